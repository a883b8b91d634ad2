#!/usr/bin/env bash
# Installs what Berth needs to build, run and test on Debian 12 (as root or with sudo). Does nothing when all is there.
set -euo pipefail
case "${1:-}" in
"") ;;
-h | --help) sed -n '2p' "$0" | cut -c3-; exit 0 ;;
*) echo "unknown option '$1'; see --help" >&2; exit 2 ;;
esac
packages=(
  build-essential cmake clang-format ninja-build pkg-config clang libclang-rt-14-dev ccache
  libjansson-dev libhwloc-dev libxxhash-dev libsodium-dev libpcre2-dev
  libjpeg62-turbo-dev libpng-dev libzip-dev libtiff6 libwebp7 libopenjp2-7
  libopenblas0-pthread libdnnl2
  ocl-icd-opencl-dev opencl-headers pocl-opencl-icd
  libvulkan-dev mesa-vulkan-drivers vulkan-validationlayers spirv-tools
  gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm qemu-user-static
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross
  gcc-riscv64-linux-gnu libc6-dev-riscv64-cross
  libcriterion-dev libonnx-testdata mypy python3-onnx python3-numpy python3-pil python3-pip python3-setuptools python3-wheel
  graphviz groff-base zsh abigail-tools
)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep 'ok installed' >/dev/null || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "installing: ${missing[*]}" >&2
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq >&2
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
