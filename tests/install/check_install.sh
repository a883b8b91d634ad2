#!/usr/bin/env bash
# Installs a build into a folder and compiles examples/run_model.c against it, through pkg-config and through CMake, and a
# C++ program through pkg-config.
# Usage: check_install.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
pc=$(find "$work/prefix" -name berth.pc)
export PKG_CONFIG_PATH=$(dirname "$pc")
cc -std=c17 -Wall -Wextra -Wpedantic -Werror examples/run_model.c $(pkg-config --cflags --libs berth) -o "$work/run_model"
output=$("$work/run_model" examples/digits/digits.onnx 2>&1 || true)
grep -q -- '--dim' <<<"$output" || { echo "unexpected: $output"; exit 1; } # the symbolic dimension is refused, clearly
c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror tests/install/load_model.cc $(pkg-config --cflags --libs berth) -o "$work/load_model"
output=$("$work/load_model" examples/digits/digits.onnx 2>&1 || true)
grep -q -- '--dim' <<<"$output" || { echo "unexpected of the C++ program: $output"; exit 1; }
mkdir "$work/consumer"
cat >"$work/consumer/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(berth REQUIRED)
add_executable(run_model $PWD/examples/run_model.c)
target_link_libraries(run_model PRIVATE berth::berth_toolkit)
CMAKE
cmake -S "$work/consumer" -B "$work/consumer/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/consumer/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/prefix/bin/berth" --version | grep -q '^berth '
echo "installed, compiled and linked through pkg-config and CMake"
