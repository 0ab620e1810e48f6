#!/bin/sh
# Passes the tests: installs what they need through apt where it is missing, then runs all of them.
# The WGSL engine runs on software Vulkan, CUDA kernels are compiled, the window runs under Xvfb; none is skipped. On a
# machine with an NVIDIA GPU, REQUIRE_ENGINES=cuda makes the tests of the CUDA engine fail instead of being skipped there.
set -eu
cd "$(dirname "$0")/.."

# Package and a file it installs, so that nothing is asked of apt where everything is there.
missing=""
need() {
    ls $2 >/dev/null 2>&1 || missing="$missing $1"
}
need gcc "/usr/bin/gcc"
need libc6-dev "/usr/include/stdio.h"
need libvulkan1 "/usr/lib/*/libvulkan.so.1"
need mesa-vulkan-drivers "/usr/share/vulkan/icd.d/lvp_icd*.json"
need libegl1 "/usr/lib/*/libEGL.so.1"
need libgl1-mesa-dri "/usr/lib/*/dri/swrast_dri.so"
need python3-pip "/usr/bin/pip3"
need xvfb "/usr/bin/Xvfb"
need x11-utils "/usr/bin/xwininfo"
need xdotool "/usr/bin/xdotool"
need libx11-6 "/usr/lib/*/libX11.so.6"
need libx11-xcb1 "/usr/lib/*/libX11-xcb.so.1"
need libxcursor1 "/usr/lib/*/libXcursor.so.1"
need libxi6 "/usr/lib/*/libXi.so.6"
need libxkbcommon-x11-0 "/usr/lib/*/libxkbcommon-x11.so.0"
if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "the tests need these packages, and there is no apt-get to install them:$missing" >&2
        exit 1
    fi
    sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing
fi

# The compiler of CUDA kernels needs no GPU. Its package is unpacked below target/, once, unless a folder is named.
if [ -z "${BATCHMARK_LIBRARIES:-}" ]; then
    nvrtc="$PWD/target/nvrtc-13.0.88"
    if [ ! -e "$nvrtc/nvidia/cu13/lib/libnvrtc.so.13" ]; then
        rm -rf "$nvrtc"
        python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$nvrtc" nvidia-cuda-nvrtc==13.0.88
    fi
    export BATCHMARK_LIBRARIES="$nvrtc/nvidia/cu13/lib"
fi

# A device or display that should be there and is not is a failure, not a skip.
export BATCHMARK_REQUIRE_WGSL=1 BATCHMARK_REQUIRE_NVRTC=1 BATCHMARK_REQUIRE_DISPLAY=1
case " ${REQUIRE_ENGINES:-} " in
*cuda*) export BATCHMARK_REQUIRE_CUDA=1 ;;
esac
# Mesa says so on stderr where this is not set.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-$(mktemp -d)}"
cargo test --workspace --locked "$@"
