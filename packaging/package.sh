#!/bin/sh
# Makes the packages for Linux, a .deb and a .tar.gz, in target/package/:
#
#     sh packaging/package.sh [--no-build]
#
# --no-build packages the release binary that is there. Needs cargo-deb and, for the dependencies of
# the .deb, dpkg-dev.
set -eu

limit=25000000

fail() {
    printf 'package.sh: %s\n' "$1" >&2
    exit 1
}

build=yes
for argument; do
    case $argument in
        --no-build) build=no ;;
        *) fail "unknown argument: $argument (there is only --no-build)" ;;
    esac
done

cd -- "$(dirname -- "$0")/.."

cargo deb --version >/dev/null 2>&1 ||
    fail "cargo-deb is missing. Install it with: cargo install cargo-deb --locked"
command -v dpkg-shlibdeps >/dev/null ||
    fail "dpkg-shlibdeps is missing. Install it with: apt install dpkg-dev"

version=$(cargo pkgid --locked -p batchmark | sed 's/.*[#@]//')
target=$(cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
arch=$(rustc -vV | sed -n 's/^host: \([^-]*\)-.*/\1/p')
[ -n "$arch" ] || arch=$(uname -m)
binary=$target/release/batchmark
out=$target/package

if [ "$build" = yes ]; then
    cargo build --release --locked -p batchmark
fi
[ -x "$binary" ] || fail "there is no $binary; run this without --no-build"
built=$("$binary" --version)
[ "$built" = "batchmark $version" ] ||
    fail "$binary is '$built', not version $version; run this without --no-build"

# One time for all files: the same sources make the same archive.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

mkdir -p -- "$out"
deb=$(cargo deb --no-build --no-strip -p batchmark --output "$out" -- --locked)
[ -f "$deb" ] || fail "cargo-deb did not say where it wrote the package: $deb"

stem=batchmark-$version-$arch-linux
stage=$(mktemp -d "$out/stage.XXXXXX")
trap 'rm -rf -- "$stage"' EXIT
mkdir -m 755 -- "$stage/$stem"
install -m 755 -- "$binary" packaging/install.sh "$stage/$stem/"
install -m 644 -- packaging/batchmark.desktop packaging/batchmark.xml packaging/batchmark.svg \
    packaging/batchmark-256.png README.md "$stage/$stem/"
for file in LICENSE*; do
    if [ -f "$file" ]; then
        install -m 644 -- "$file" "$stage/$stem/"
    fi
done
archive=$out/$stem.tar.gz
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    -cf "$stage/archive.tar" "$stem"
gzip -9nc "$stage/archive.tar" >"$archive"

status=0
for file in "$deb" "$archive"; do
    size=$(wc -c <"$file")
    printf '%s  %s bytes\n' "$file" "$size"
    if [ "$size" -gt "$limit" ]; then
        printf 'package.sh: %s is over %s bytes\n' "$file" "$limit" >&2
        status=1
    fi
done
exit $status
