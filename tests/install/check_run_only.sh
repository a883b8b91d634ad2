#!/usr/bin/env bash
# Builds libberth alone (BERTH_RUN_ONLY), installs it into a folder and checks it: nothing of the compiler, less than 300 KB stripped,
# the same public functions as in the whole build; a program that `berth build` made runs with it, linked through pkg-config and
# through CMake; for the processor without any PATH (PoCL calls a linker).
# Usage: check_run_only.sh BUILD_FOLDER      of the whole build
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
most_bytes=300000

run=$build/run_only
cmake -G Ninja -S . -B "$run" -DCMAKE_BUILD_TYPE=MinSizeRel -DBERTH_RUN_ONLY=ON >"$work/log" 2>&1 &&
  cmake --build "$run" >>"$work/log" 2>&1 && cmake --install "$run" --prefix "$work/prefix" --strip >>"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
pc=$(find "$work/prefix" -name berth.pc)
libraries=$(dirname "$(dirname "$pc")")

size=$(stat -L -c %s "$libraries/libberth.so")
[ "$size" -lt $most_bytes ] || fail "libberth.so has $size bytes stripped, not less than $most_bytes"
found=$(find "$work/prefix" '(' -name '*compiler*' -o -name 'libberth_*.a' -o -name berth-internal -o -path '*/bin/*' ')')
[ -z "$found" ] || fail "installed although only libberth was wanted: $found"
readelf -d "$libraries/libberth.so" | grep 'SONAME.*\[libberth\.so\.0\.1\]' >/dev/null || fail "no soname with the version"
public() { nm -D --with-symbol-versions --defined-only "$1" | awk '{print $3}' | grep '@@BERTH_0\.1$' | sort; }
diff <(public "$build/libberth.so") <(public "$libraries/libberth.so") || fail "not the same public functions"

# The program is made by the whole build, for one device and for two.
build() { "$build/berth" build examples/digits/digits.onnx --dim batch=1 "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
build --target cpu -o "$work/cpu.berth"
build --target cpu,opencl --pin op:Conv=opencl:0 -o "$work/two.berth"
export PKG_CONFIG_PATH=$(dirname "$pc")
cc -std=c99 examples/recognise_digit.c $(pkg-config --cflags --libs berth) -o "$work/recognise_digit"
# The static form, for linkers that do not read GCC's intermediate code, too.
cc -std=c99 examples/recognise_digit.c -fno-use-linker-plugin $(pkg-config --cflags --libs berth-static) -Wl,--gc-sections -o "$work/static_recognise_digit"
readelf -d "$work/static_recognise_digit" | grep 'NEEDED.*libberth' && fail "the static form needs the shared one"
pkg-config --exists berth-compiler && fail "pkg-config knows berth-compiler"
mkdir "$work/consumer"
cat >"$work/consumer/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(berth REQUIRED COMPONENTS berth)
find_package(berth QUIET COMPONENTS compiler)
if(berth_FOUND)
  message(FATAL_ERROR "the compiler was found")
endif()
add_executable(recognise_digit $PWD/examples/recognise_digit.c)
target_link_libraries(recognise_digit PRIVATE berth::berth)
CMAKE
cmake -G Ninja -S "$work/consumer" -B "$work/consumer/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/consumer/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for program in "$work/recognise_digit" "$work/static_recognise_digit" "$work/consumer/build/recognise_digit"; do
  for run in "cpu PATH=" "two PATH=$PATH"; do
    output=$(env -i LD_LIBRARY_PATH="$libraries" HOME="$work" "${run#* }" "$program" "$work/${run%% *}.berth")
    grep -q '^a 2 ' <<<"$output" || fail "${run%% *}.berth: a two is recognised as: $output"
  done
done
# A model with a loop and an open dimension: byte code, with code for two lengths.
cat >"$work/doubling.txt" <<'MODULE'
module "doubling"
graph @main(%x: f32[N], %n: i64[]) {
  %y = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[N]) {
    %d = add(%c, %c)
    return %go, %d
  }
  return %y
}
MODULE
"$build/berth" build "$work/doubling.txt" --specialise N=2,N=3 -o "$work/doubling.berth" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cat >"$work/doubling.c" <<'C'
#include <berth/dynamic.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    float x[4] = {1, 2, 3, 4};
    int64_t times = 5;
    berth_tensor inputs[2] = {{BERTH_DTYPE_F32, 1, {0}, x}, {BERTH_DTYPE_I64, 0, {0}, &times}};
    berth_program *program = NULL;
    berth_dynamic *model = NULL;
    berth_status status = argc == 2 ? berth_program_open(argv[1], &program) : NULL;
    if (!status) status = berth_program_load_dynamic(program, 1, &model);
    for (int64_t length = 2; length <= 4 && !status; ++length) {
        berth_results *results = NULL;
        inputs[0].dims[0] = length;
        status = berth_dynamic_run(model, inputs, 2, &results);
        if (!status) printf("%g ", ((float *)berth_results_item(results, 0, 0)->data)[length - 1]);
        berth_results_free(results);
    }
    puts(status ? berth_status_message(status) : "");
    berth_status_free(status);
    berth_dynamic_destroy(model);
    berth_program_release(program);
    return 0;
}
C
cc -std=c99 "$work/doubling.c" $(pkg-config --cflags --libs berth) -o "$work/doubling"
output=$(env -i LD_LIBRARY_PATH="$libraries" HOME="$work" PATH= "$work/doubling" "$work/doubling.berth")
[[ "$output" == "64 96 "*"no code for f32[4]; it has some for f32[2]; f32[3]"* ]] || fail "byte code: $output"
# A driver from a library of its own finds what it needs of libberth.
cat >"$work/driver.c" <<'C'
#include <berth/berth.h>
#include <stdio.h>
int main(int argc, char **argv) {
    const char *kind = NULL;
    berth_status status = argc == 2 ? berth_driver_load(argv[1], &kind) : BERTH_OK;
    puts(status ? berth_status_message(status) : kind ? kind : "?");
    berth_status_free(status);
    return 0;
}
C
cc -std=c99 "$work/driver.c" $(pkg-config --cflags --libs berth) -o "$work/driver"
for driver in vta:libberth_vta.so example:tests/driver_null.so; do
  [ -e "$build/${driver#*:}" ] || continue
  output=$(LD_LIBRARY_PATH="$libraries" "$work/driver" "$build/${driver#*:}")
  [ "$output" = "${driver%%:*}" ] || fail "the driver ${driver#*:}: $output"
done
echo "libberth.so alone: $size bytes stripped; runs programs of the whole build, byte code among them"
