#!/usr/bin/env bash
# Installs a build into a folder: public headers and nothing else. Compiles the examples against it, through pkg-config and
# through CMake, shared and static, and a C++ program through pkg-config; runs them. Then the plug-in SDK, which is installed
# by name: an example against internal headers, and a plug-in.
# Usage: check_install.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# Of headers only the public ones, of static libraries only their static forms.
fail() { echo "$*"; exit 1; }
headers=$(cd "$work/prefix/include" && find . -type f | sort)
[ "$headers" = "$(cd include && find . -type f | sort)" ] || fail "installed headers: $headers"
libraries=$(find "$work/prefix" -name '*.a' -printf '%f\n' | sort | tr '\n' ' ')
[ "$libraries" = "libberth-compiler.a libberth.a " ] || fail "installed static libraries: $libraries"
pc=$(find "$work/prefix" -name berth.pc)
export PKG_CONFIG_PATH=$(dirname "$pc") LD_LIBRARY_PATH=$(dirname "$(dirname "$pc")")
# libberth is as small as without the compiler beside it.
if ! grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Debug$' "$build/CMakeCache.txt"; then
  strip --strip-unneeded "$LD_LIBRARY_PATH/libberth.so" -o "$work/stripped.so"
  size=$(stat -c %s "$work/stripped.so")
  [ "$size" -lt 300000 ] || fail "the installed libberth.so has $size bytes stripped, not less than 300000"
fi
flags=(-Wall -Wextra -Wpedantic -Werror)
# The C API: a model is compiled and kept as a program, which recognises a digit in a program without the compiler.
cc -std=c99 "${flags[@]}" examples/run_model.c $(pkg-config --cflags --libs berth-compiler) -o "$work/run_model"
cc -std=c99 "${flags[@]}" examples/recognise_digit.c $(pkg-config --cflags --libs berth) -o "$work/recognise_digit"
output=$("$work/run_model" examples/digits/digits.onnx cpu "$work/digits.berth")
grep -q '^output probabilities f32\[1,10\]$' <<<"$output" || { echo "run_model prints: $output"; exit 1; }
output=$("$work/recognise_digit" "$work/digits.berth")
grep -q '^a 2 ' <<<"$output" || { echo "a two is recognised as: $output"; exit 1; }
readelf -d "$work/recognise_digit" | grep 'NEEDED.*libberth-compiler' >/dev/null && { echo "the run side needs the compiler"; exit 1; }
# The same without shared libraries of Berth's.
cc -std=c99 "${flags[@]}" examples/run_model.c $(pkg-config --cflags --libs berth-compiler-static) -o "$work/static_run_model"
cc -std=c99 "${flags[@]}" examples/recognise_digit.c $(pkg-config --cflags --libs berth-static) -o "$work/static_recognise_digit"
env -u LD_LIBRARY_PATH "$work/static_run_model" examples/digits/digits.onnx cpu "$work/static.berth" >/dev/null
env -u LD_LIBRARY_PATH "$work/static_recognise_digit" "$work/static.berth" | grep '^a 2 ' >/dev/null
readelf -d "$work/static_run_model" "$work/static_recognise_digit" | grep 'NEEDED.*libberth' && fail "static programs need shared libraries"
c++ -std=c++11 "${flags[@]}" tests/install/load_model.cc $(pkg-config --cflags --libs berth-compiler) -o "$work/load_model"
output=$("$work/load_model" examples/digits/digits.onnx 2>&1 || true)
grep -q 'batch' <<<"$output" || { echo "unexpected of the C++ program: $output"; exit 1; } # the symbolic dimension is refused, clearly
mkdir "$work/consumer"
cat >"$work/consumer/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(berth REQUIRED)
add_executable(run_model $PWD/examples/run_model.c)
target_link_libraries(run_model PRIVATE berth::compiler)
add_executable(recognise_digit $PWD/examples/recognise_digit.c)
target_link_libraries(recognise_digit PRIVATE berth::berth)
find_package(berth REQUIRED COMPONENTS static)
add_executable(static_recognise_digit $PWD/examples/recognise_digit.c)
target_link_libraries(static_recognise_digit PRIVATE berth::berth_static)
add_executable(static_run_model $PWD/examples/run_model.c)
target_link_libraries(static_run_model PRIVATE berth::compiler_static)
CMAKE
consume() {
  cmake -S "$work/consumer" -B "$work/consumer/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
    cmake --build "$work/consumer/build" >>"$work/log" 2>&1
}
consume || { cat "$work/log"; exit 1; }
for program in recognise_digit static_recognise_digit; do
  "$work/consumer/build/$program" "$work/digits.berth" | grep '^a 2 ' >/dev/null
done
# What is not installed is not found, and CMake says how to get it.
pkg-config --exists berth-internal && fail "pkg-config knows berth-internal without the plug-in SDK"
cat >>"$work/consumer/CMakeLists.txt" <<CMAKE
find_package(berth REQUIRED COMPONENTS internal)
add_executable(digits $PWD/examples/digits/digits.c)
target_link_libraries(digits PRIVATE berth::berth_toolkit)
CMAKE
consume && fail "CMake finds the internal components without the plug-in SDK"
tr -s ' \n' ' ' <"$work/log" | grep 'component plugin-sdk' >/dev/null || { cat "$work/log"; exit 1; }
# The plug-in SDK: internal headers and static components.
cmake --install "$build" --prefix "$work/prefix" --component plugin-sdk >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
consume || { cat "$work/log"; exit 1; }
cc -std=c17 "${flags[@]}" examples/digits/digits.c $(pkg-config --cflags --libs berth-internal) -o "$work/digits"
"$work/digits" cpu | grep '^the first image is a 2; recognised as 2$' >/dev/null
# A plug-in from outside the tree.
cmake -S examples/vendor -B "$work/vendor" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/vendor" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
berth=("$work/prefix/bin/berth")
plugin=(--plugin "$work/vendor/vendor.so")
found=$("${berth[@]}" opt examples/vendor/model.txt "${plugin[@]}" --passes fold-constants,find-scaled-tanh --quiet |
  grep -c '= example.scaled_tanh(')
[ "$found" = 2 ] || { echo "the plug-in's pass found $found operations, not 2"; exit 1; }
"${berth[@]}" opt examples/vendor/model.txt "${plugin[@]}" --passes all --quiet | grep 'simd %' >/dev/null ||
  { echo "the plug-in's schedule was not used"; exit 1; }
# The same spelled out, in constants that the pass does not take.
cat >"$work/difference.txt" <<'MODULE'
module "difference"
graph @main(%x: f32[16,256]) {
  %alpha = constant() {value = f32[1] (2.0)}
  %beta = constant() {value = f32[1] (0.5)}
  %a = mul(%x, %beta)
  %b = tanh(%a)
  %c = mul(%b, %alpha)
  %d = example.scaled_tanh(%x) {alpha = 2.0, beta = 0.5}
  %difference = sub(%c, %d)
  return %difference, %d
}
MODULE
output=$("${berth[@]}" run "$work/difference.txt" "${plugin[@]}" --quiet)
# Vectors and single elements may be a unit in the last place apart.
grep -qE 'difference f32\[16,256\] range (0|-[0-9.]+e-0[78]) \.\. (0|[0-9.]+e-0[78]),' <<<"$output" || { echo "the plug-in computes: $output"; exit 1; }
"$work/prefix/bin/berth" --version | grep '^berth ' >/dev/null
for file in man/man1/berth.1 man/man1/berth-run.1 bash-completion/completions/berth zsh/site-functions/_berth; do
  [ -s "$work/prefix/share/$file" ] || { echo "not installed: $file"; exit 1; }
done
# A command that is a program of its own, and a driver that is a library, are found where they are installed.
"$work/prefix/bin/berth" help vta | grep '^Usage: berth vta ' >/dev/null
driver=$(find "$work/prefix" -name libberth_vta.so)
"$work/prefix/bin/berth" devices --driver "$driver" 2>/dev/null | grep 'simulated VTA' >/dev/null
echo "libberth.so: ${size:+$size bytes stripped; }installed, compiled and linked through pkg-config and CMake, shared and static; a plug-in built and run"
