#!/usr/bin/env bash
# Packs a build as Debian packages, unpacks them into a folder, and uses what is there: the command, a program against the
# public libraries alone, the NPU's command. No file is in two packages, and each says what it needs.
# Usage: check_packages.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
for tool in cpack dpkg-deb dpkg-shlibdeps; do
  command -v $tool >/dev/null || { echo "BERTH-SKIPPED 1: no $tool here (Debian packages cmake, dpkg-dev)"; exit 0; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/packages" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
names=$(for file in "$work"/packages/*.deb; do dpkg-deb -f "$file" Package; done | sort | tr '\n' ' ')
wanted="berth berth-vta libberth-compiler0.1 libberth-dev libberth-internal-dev libberth0.1 "
[ "$names" = "$wanted" ] || { echo "the packages are $names, not $wanted"; exit 1; }
twice=$(for file in "$work"/packages/*.deb; do dpkg-deb -c "$file" | awk '$1 !~ /^d/ {print $6}'; done | sort | uniq -d)
[ -z "$twice" ] || { echo "in two packages: $twice"; exit 1; }
field() { dpkg-deb -f "$work"/packages/"$1"_*.deb "$2"; }
needs() { field "$1" Depends | grep -- "$2" >/dev/null || { echo "$1 does not depend on $2: $(field "$1" Depends)"; exit 1; }; }
needs libberth0.1 libhwloc15
needs libberth-compiler0.1 'libberth0.1 (= '
needs libberth-dev 'libberth-compiler0.1 (= '
needs libberth-internal-dev 'libberth-dev (= '
needs berth libzip4
needs berth-vta 'berth (= '
field berth Recommends | grep 'gcc | clang' >/dev/null || { echo "the command does not recommend a compiler"; exit 1; }
[ "$(for file in "$work"/packages/*.deb; do dpkg-deb -f "$file" Description | head -1; done | sort -u | wc -l)" = 6 ] ||
  { echo "packages share a description"; exit 1; }

# What users of the public libraries install: no static component, no internal header.
root=$work/root
for name in libberth0.1 libberth-compiler0.1 libberth-dev; do dpkg-deb -x "$work"/packages/${name}_*.deb "$root"; done
[ -z "$(find "$root" -name 'libberth_*.a' -o -name berth-internal)" ] || { echo "internals are in the public packages"; exit 1; }
export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig LD_LIBRARY_PATH=$root/usr/lib
cc -std=c99 examples/run_model.c $(pkg-config --cflags --libs berth-compiler) -o "$work/run_model"
output=$("$work/run_model" examples/digits/digits.onnx cpu "$work/digits.berth")
grep -q '^output probabilities f32\[1,10\]$' <<<"$output" || { echo "run_model prints: $output"; exit 1; }
mkdir "$work/consumer"
cat >"$work/consumer/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(berth REQUIRED COMPONENTS compiler)
add_executable(run_model $PWD/examples/run_model.c)
target_link_libraries(run_model PRIVATE berth::compiler)
CMAKE
consume() { cmake -S "$work/consumer" -B "$work/consumer/build" -DCMAKE_PREFIX_PATH="$root/usr" >"$work/log" 2>&1; }
consume && cmake --build "$work/consumer/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
sed -i 's/COMPONENTS compiler/COMPONENTS internal/' "$work/consumer/CMakeLists.txt"
consume && { echo "CMake finds the internal components in the public packages"; exit 1; }
tr -s ' \n' ' ' <"$work/log" | grep 'the package libberth-internal-dev' >/dev/null || { cat "$work/log"; exit 1; }
dpkg-deb -x "$work"/packages/libberth-internal-dev_*.deb "$root"
consume || { cat "$work/log"; exit 1; }

# The command.
dpkg-deb -x "$work"/packages/berth_*.deb "$root"
berth=$root/usr/bin/berth
"$berth" run examples/digits/digits.onnx --dim batch=1 --quiet >/dev/null
"$berth" vta --help >/dev/null 2>&1 && { echo "berth vta is there without its package"; exit 1; }
dpkg-deb -x "$work"/packages/berth-vta_*.deb "$root"
"$berth" vta --help >/dev/null
"$berth" devices --driver "$root/usr/lib/berth/libberth_vta.so" | grep '^vta:' >/dev/null
[ -s "$root/usr/share/man/man1/berth-run.1" ] || { echo "no manual page"; exit 1; }
echo "6 packages"
