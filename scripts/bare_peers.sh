#!/usr/bin/env bash
# The int8 networks of MLPerf Tiny as CMSIS-NN computes them on a Cortex-M4 or M55 (QEMU): a table of docs/bare.md.
# Usage: scripts/bare_peers.sh CMSIS_NN [m4|m55]      CMSIS_NN: a checkout of github.com/ARM-software/CMSIS-NN
set -euo pipefail
case "${1:-}" in
"" | -h | --help) sed -n '2,3p' "$0" | cut -c3-; exit 0 ;;
esac
peer=$(realpath "$1")
core=${2:-m4}
cd "$(dirname "$0")/.."
source scripts/bare_board.sh "$core"
bench=$PWD/bench/bare
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
flags="$cpu ${OPTIMISE:--Os} -ffunction-sections -fdata-sections -I$peer/Include"
for source in "$peer"/Source/{ConvolutionFunctions,FullyConnectedFunctions,NNSupportFunctions,PoolingFunctions,BasicMathFunctions,SoftmaxFunctions,TransposeFunctions}/*_s{8,16}*.c \
  "$peer"/Source/NNSupportFunctions/arm_{nntables,q7,s8}*.c; do
  [ -f "$source" ] || continue
  arm-none-eabi-gcc -std=c99 -w $flags -c "$source" -o "peer_$(basename "$source" .c).o"
done
arm-none-eabi-gcc $flags -DMODEL_RUN=measured_run -DMODEL_REAL=network_run -c "$board"/{startup,measure}.c
echo "| model | text | RAM | of it scratch | stack | instructions |"
echo "|---|---|---|---|---|---|"
for network in autoencoder:0x04 dscnn:0x2f mobilenetv1:0x2f resnet8:0x3d; do
  name=${network%:*}
  arm-none-eabi-gcc -std=c99 $flags "-DNETWORK=${name}_layers" "-DKINDS=${network#*:}" -c "$bench/cmsis_nn.c"
  arm-none-eabi-gcc $flags -nostartfiles --specs=rdimon.specs -L "$board" -T $script \
    -Wl,--gc-sections -o network.elf cmsis_nn.o peer_*.o startup.o measure.o -lm
  run_on_board network.elf >out 2>err </dev/null
  read -r live scratch failed <<<"$(sed -E 's/live ([0-9]+) scratch ([0-9]+) failed ([0-9]+)/\1 \2 \3/' out)"
  read -r stack instructions <<<"$(sed -E 's/stack ([0-9]+) .* instructions ([0-9]+)/\1 \2/' err)"
  [ "$failed" = 0 ] || { echo "$name: the library refused" >&2; exit 1; }
  # The library's own functions and tables, and the chain of calls.
  text=0
  for bytes in $(arm-none-eabi-nm -S network.elf | awk '$3 ~ /[tTrR]/ && $4 ~ /^(arm_|network_run|run_layer)/ {print $2}'); do
    text=$((text + 0x$bytes))
  done
  echo "| $name | $text | $((live + scratch)) | $scratch | $stack | $instructions |"
done
