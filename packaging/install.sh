#!/bin/sh
# Installs Batchmark from the unpacked archive for one user, or removes it again.
set -eu

usage() {
    cat <<'EOF'
Usage: install.sh [--prefix DIR] [--uninstall]

  --prefix DIR   where to install; default ~/.local, for all users /usr/local (as root)
  --uninstall    remove what an installation with the same prefix put there
EOF
}

say() { printf '%s\n' "$1"; }

fail() {
    printf 'install.sh: %s\n' "$1" >&2
    exit 1
}

prefix=
uninstall=no
while [ $# -gt 0 ]; do
    case $1 in
        --prefix)
            [ $# -ge 2 ] || fail "--prefix needs a folder"
            prefix=$2
            shift
            ;;
        --prefix=*) prefix=${1#--prefix=} ;;
        --uninstall) uninstall=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        *)
            usage >&2
            fail "unknown argument: $1"
            ;;
    esac
    shift
done
if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail "HOME is not set; name a folder with --prefix"
    prefix=$HOME/.local
fi

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

if [ "$uninstall" = no ]; then
    [ -f "$here/batchmark" ] ||
        fail "the program 'batchmark' is not beside this script. Unpack the whole archive and run install.sh from it;
in the source tree, packaging/package.sh makes the archive."
    for file in batchmark.desktop batchmark.xml batchmark.svg batchmark-256.png; do
        [ -f "$here/$file" ] || fail "$file is not beside this script; unpack the whole archive"
    done
    mkdir -p -- "$prefix" || fail "can't make the folder $prefix"
elif [ ! -d "$prefix" ]; then
    say "Batchmark is not installed below $prefix."
    exit 0
fi
prefix=$(CDPATH='' cd -- "$prefix" && pwd) || fail "can't enter the folder $prefix"
share=$prefix/share
binary=$prefix/bin/batchmark
desktop=$share/applications/batchmark.desktop
mime=$share/mime/packages/batchmark.xml
icon_svg=$share/icons/hicolor/scalable/apps/batchmark.svg
icon_png=$share/icons/hicolor/256x256/apps/batchmark.png

# Menus and file managers read databases of what is installed.
update_databases() {
    if [ -d "$share/applications" ] && command -v update-desktop-database >/dev/null; then
        update-desktop-database -q "$share/applications" || say "Note: update-desktop-database failed."
    fi
    if [ -d "$share/mime/packages" ] && command -v update-mime-database >/dev/null; then
        update-mime-database "$share/mime" >/dev/null 2>&1 || say "Note: update-mime-database failed."
    fi
    # Without a cache the icons are found as they are; a cache must not be older than its folder.
    if [ -f "$share/icons/hicolor/icon-theme.cache" ] && command -v gtk-update-icon-cache >/dev/null; then
        gtk-update-icon-cache -q -t -f "$share/icons/hicolor" || say "Note: gtk-update-icon-cache failed."
    fi
}

if [ "$uninstall" = yes ]; then
    removed=no
    for file in "$binary" "$desktop" "$mime" "$icon_svg" "$icon_png"; do
        if [ -e "$file" ] || [ -L "$file" ]; then
            rm -f -- "$file" || fail "can't remove $file"
            say "removed $file"
            removed=yes
        fi
    done
    if [ "$removed" = no ]; then
        say "Batchmark is not installed below $prefix."
        exit 0
    fi
    update_databases
    say "Batchmark is removed. Result files and settings are kept."
    exit 0
fi

# put MODE FROM TO
put() {
    { mkdir -p -- "$(dirname -- "$3")" && install -m "$1" -- "$2" "$3"; } ||
        fail "can't write $3; choose another folder with --prefix, or run this as root"
    say "installed $3"
}

# The path of the program as a desktop entry wants it: in quotes, special characters escaped twice.
exec_path=$(printf '%s' "$binary" | sed 's/\\/\\\\\\\\/g; s/["`$]/\\\\&/g; s/%/%%/g')
entry=$(mktemp)
trap 'rm -f -- "$entry"' EXIT
while IFS= read -r line; do
    case $line in
        Exec=*) printf 'Exec="%s" %%F\n' "$exec_path" ;;
        *) printf '%s\n' "$line" ;;
    esac
done <"$here/batchmark.desktop" >"$entry"

put 755 "$here/batchmark" "$binary"
put 644 "$entry" "$desktop"
put 644 "$here/batchmark.xml" "$mime"
put 644 "$here/batchmark.svg" "$icon_svg"
put 644 "$here/batchmark-256.png" "$icon_png"
update_databases

say "Batchmark is installed; 'install.sh --uninstall' with the same --prefix removes it."
case :${PATH:-}: in
    *":$prefix/bin:"*) ;;
    *) say "Note: $prefix/bin is not in PATH; start it from the menu or as $binary" ;;
esac
case :${XDG_DATA_HOME:-${HOME:-}/.local/share}:${XDG_DATA_DIRS:-/usr/local/share:/usr/share}: in
    *":$share:"* | *":$share/:"*) ;;
    *) say "Note: menus and file managers don't look into $share; add it to XDG_DATA_DIRS." ;;
esac
