#!/usr/bin/env bash
# Models as onnx2c's C on a Cortex-M4 or M55 (QEMU), compiled and run as scripts/bare_sizes.sh does: a table of docs/bare.md.
# Usage: scripts/bare_onnx2c.sh ONNX2C MODELS [m4|m55]      ONNX2C: the program, built from github.com/kraiskil/onnx2c
set -euo pipefail
case "${1:-}" in
"" | -h | --help) sed -n '2,3p' "$0" | cut -c3-; exit 0 ;;
esac
peer=$(realpath "$1")
models=$(realpath "$2")
core=${3:-m4}
cd "$(dirname "$0")/.."
source scripts/bare_board.sh "$core"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
flags="$cpu -Os -ffunction-sections -fdata-sections"
arm-none-eabi-gcc $flags -DMODEL_RUN=measured_run -DMODEL_REAL=network_run -c "$board"/{startup,measure}.c
echo "| model | text | RAM | stack | instructions |"
echo "|---|---|---|---|---|"
for path in mnist mnist_quantized tfl_helloworld mlperf_tiny/{autoencoder,dscnn,mobilenetv1,resnet8}{,_int8}; do
  [ -f "$models/$path/model.onnx" ] || continue
  name=$(basename "$path")
  "$peer" -d batch:1 -d N:1 "$models/$path/model.onnx" >model.c 2>log || { echo "| $name | not taken | | | |"; continue; }
  # Its parameters, as buffers of the caller.
  signature=$(sed -nE 's/^void entry\((.*)\)[ {]*$/\1/p' model.c | head -1)
  python3 - "$signature" >call.c <<'PYTHON'
import re
import sys

parameters = re.findall(r"(?:const )?([A-Za-z0-9_]+) \w+((?:\[\d+\])+)", sys.argv[1])
print("#include <stdint.h>\nvoid entry();\nint measured_run(const void *, void *);\n"
      "int network_run(const void *, void *);")
for i, (kind, dims) in enumerate(parameters):
    print(f"static {kind} buffer_{i}{dims};")
print("int network_run(const void *in, void *out) {\n  (void)in, (void)out;\n"
      f"  entry({', '.join(f'buffer_{i}' for i in range(len(parameters)))});\n  return 0;\n}}\n"
      "int main(void) { return measured_run(0, 0); }")
PYTHON
  arm-none-eabi-gcc -std=c99 -w $flags -c model.c call.c
  arm-none-eabi-gcc $flags -nostartfiles --specs=rdimon.specs -L "$board" -T "$script" -Wl,--gc-sections -o model.elf \
    model.o call.o startup.o measure.o -lm
  run_on_board model.elf >/dev/null 2>measured </dev/null
  read -r stack instructions <<<"$(sed -E 's/stack ([0-9]+) .* instructions ([0-9]+)/\1 \2/' measured)"
  # Its constants are in the same object: text is its code alone.
  read -r text ram <<<"$(arm-none-eabi-size -A model.o | awk '/^\.text/ {t += $2} /^\.(bss|data)/ {r += $2} END {print t + 0, r + 0}')"
  echo "| $name | $text | $ram | $stack | $instructions |"
done
