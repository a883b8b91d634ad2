#!/usr/bin/env bash
# Sizes and instructions of models as plain C on a Cortex-M4 or M55 (QEMU): the tables of docs/bare.md.
# Usage: scripts/bare_sizes.sh MODELS [speed|size|least|rolling|size-rolling] [m4|m55]      MODELS: a folder with NAME/model.onnx and NAME/test_data_set_0
# least: speed, within the smallest memory that there is a plan for; rolling, size-rolling: speed or size, with rows that roll
# OPTIMISE=-O3 is for the compiler (-Os without it).
set -euo pipefail
case "${1:-}" in
"" | -h | --help) sed -n '2,5p' "$0" | cut -c3-; exit 0 ;;
esac
models=$(realpath "$1")
optimise=${2:-speed}
core=${3:-m4}
cd "$(dirname "$0")/.."
source scripts/bare_board.sh "$core"
berth=$PWD/build/release/berth
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $core in
m4) target="cpu -arch=cortex-m4" ;;
m55) target="cpu -arch=cortex-m55 -features=mve" ;;
esac
flags="$cpu ${OPTIMISE:--Os} -ffunction-sections -fdata-sections"
case $optimise in
least) how=(--optimise speed) ;;
rolling) how=(--optimise speed --patches rolling) ;;
size-rolling) how=(--optimise size --patches rolling) ;;
*) how=(--optimise "$optimise") ;;
esac
echo "| model | text | constants | arena | stack | instructions |"
echo "|---|---|---|---|---|---|"
# build BYTES: the model within a limit of memory.
build() {
  "$berth" build "$models/$path/model.onnx" --target "$target -memory_capacity_bytes=$1" --runtime bare \
    "${how[@]}" --name "$name" -o "$folder" 2>&1 >/dev/null
}
for path in mnist mnist_quantized tfl_helloworld mlperf_tiny/{autoencoder,dscnn,mobilenetv1,resnet8}{,_int8}; do
  [ -f "$models/$path/model.onnx" ] || continue
  name=$(basename "$path")
  folder=$work/$name
  limit=4194304
  # The refusal of one byte names the smallest limit.
  [ "$optimise" != least ] || limit=$({ build 1 || true; } | sed -nE 's/.* needs [^(]*\(([0-9]+) bytes\).*/\1/p')
  build "$limit" >"$work/log" || { cat "$work/log" >&2; exit 1; }
  cd "$folder"
  upper=$(tr a-z A-Z <<<"$name")
  arm-none-eabi-gcc -std=c99 $flags "-D${upper}_RAM_ATTRIBUTE=__attribute__((section(\".model\")))" \
    -c "$name.c" "${name}_weights.c" main.c
  arm-none-eabi-gcc $flags "-DMODEL_RUN=__wrap_${name}_run" "-DMODEL_REAL=__real_${name}_run" \
    -c "$board/startup.c" "$board/measure.c"
  arm-none-eabi-gcc $flags -nostartfiles --specs=rdimon.specs -L "$board" -T "$script" "-Wl,--wrap=${name}_run,--gc-sections" \
    -o model.elf "$name.o" "${name}_weights.o" main.o startup.o measure.o -lm
  # One image of zeros will do: no path of the code depends on values.
  bytes=$(sed -nE 's/^static ([a-z0-9_]+) input_[0-9]+\[([0-9]+)\];/\1 \2/p' main.c |
    awk '{size = $1 ~ /8_t/ ? 1 : $1 ~ /16_t/ ? 2 : $1 ~ /64_t|double/ ? 8 : 4; n += size * $2} END {print n}')
  measured=$(head -c "$bytes" /dev/zero | run_on_board model.elf 2>&1 >/dev/null)
  read -r stack arena instructions <<<"$(sed -E 's/stack ([0-9]+) static ([0-9]+) .* instructions ([0-9]+)/\1 \2 \3/' <<<"$measured")"
  text=$(arm-none-eabi-size "$name.o" | awk 'NR == 2 {print $1}')
  constants=$(sed -nE 's/^#define .*_CONSTANT_BYTES ([0-9]+)/\1/p' "$name.h")
  echo "| $name | $text | $constants | $arena | $stack | $instructions |"
  cd - >/dev/null
done
