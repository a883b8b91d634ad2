#!/usr/bin/env bash
# Models as TFLM runs them, with CMSIS-NN's kernels, on a Cortex-M4 or M55 (QEMU): a table of docs/bare.md.
# Usage: scripts/bare_tflm.sh SOURCES MODELS [m4|m55]      SOURCES: a folder with the checkouts tflite-micro, flatbuffers
# (the version that its schema_generated.h asks for), gemmlowp, ruy, CMSIS-NN and CMSIS_6; MODELS: as for scripts/bare_sizes.sh
# OPTIMISE=-O3 is for all of TFLM (-Os without it). Needs libstdc++ for arm-none-eabi, and onnx and numpy for python3.
set -euo pipefail
case "${1:-}" in
"" | -h | --help) sed -n '2,5p' "$0" | cut -c3-; exit 0 ;;
esac
peers=$(realpath "$1") models=$(realpath "$2")
core=${3:-m4}
cd "$(dirname "$0")/.."
source scripts/bare_board.sh "$core"
bench=$PWD/bench/bare
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
flags="$cpu ${OPTIMISE:--Os} -ffunction-sections -fdata-sections -fno-unwind-tables --specs=nano.specs"
# As TFLM's makefile has it for a release, with CMSIS-NN.
flags_tflm="-DTF_LITE_STATIC_MEMORY -DTF_LITE_STRIP_ERROR_STRINGS -DNDEBUG -DCMSIS_NN -I$peers/tflite-micro -I$peers/flatbuffers/include
  -I$peers/gemmlowp -I$peers/ruy -I$peers/CMSIS-NN -I$peers/CMSIS-NN/Include -I$peers/CMSIS_6/CMSIS/Core/Include"
flags_cc="-std=c++17 -fno-rtti -fno-exceptions -fno-threadsafe-statics"
compile() { arm-none-eabi-g++ $flags_cc -w $flags $flags_tflm "$@"; }
lite=$peers/tflite-micro/tensorflow/lite
kernels=(add conv depthwise_conv fully_connected pooling softmax)
sources=("$lite"/micro/{debug_log,flatbuffer_utils,memory_helpers,micro_allocat*,micro_context,micro_interpreter,micro_interpreter_context}.cc
  "$lite"/micro/{micro_interpreter_graph,micro_log,micro_op_resolver,micro_resource_variable,micro_utils,kernels/kernel_util}.cc
  "$lite"/micro/{arena_allocator,memory_planner,tflite_bridge}/*.cc "$lite"/core/{api,c}/*.cc "$lite"/kernels/kernel_util.cc "$lite"/kernels/internal/*.cc
  "$peers/tflite-micro/tensorflow/compiler/mlir/lite/schema/schema_utils.cc")
for kernel in "${kernels[@]}"; do sources+=("$lite/micro/kernels/${kernel}_common.cc" "$lite/micro/kernels/cmsis_nn/$kernel.cc"); done
# Its headers take most of the time: they are compiled once.
printf '#include "tensorflow/lite/%s.h"\n' micro/micro_interpreter kernels/kernel_util micro/kernels/conv micro/kernels/fully_connected >all.h
compile -x c++-header all.h -o all.h.gch
for source in "${sources[@]}"; do
  case $source in *_test.cc | */recording_*) continue ;; esac
  object=${source#"$peers/tflite-micro/tensorflow/"}
  [ ! -f "$source" ] || compile -include all.h -c "$source" -o "peer_${object//\//_}.o"
done
for source in "$peers"/CMSIS-NN/Source/{ConvolutionFunctions,FullyConnectedFunctions,NNSupportFunctions,PoolingFunctions,BasicMathFunctions,SoftmaxFunctions,TransposeFunctions}/*.c; do
  case $source in *_f16.c | *_f32.c) continue ;; esac
  arm-none-eabi-gcc -std=c99 -w $flags $flags_tflm -c "$source" -o "peer_$(basename "$source").o"
done
arm-none-eabi-gcc $flags -DMODEL_RUN=measured_run -DMODEL_REAL=network_run -c "$board"/{startup,measure}.c
export PYTHONPATH=$lite/python:$peers/flatbuffers/python
echo "| model | text | RAM | of it arena | network | stack | instructions |"
echo "|---|---|---|---|---|---|---|"
for path in mnist mnist_quantized tfl_helloworld mlperf_tiny/{autoencoder,dscnn,mobilenetv1,resnet8}{,_int8}; do
  [ -f "$models/$path/model.onnx" ] || continue
  name=$(basename "$path")
  python3 "$bench/to_tflite.py" convert "$models/$path" network.tflite input >operators 2>log || { echo "| $name | not taken | | | | | |"; continue; }
  read -r count calls <operators
  compile -include all.h "-DOPERATORS=$count" "-DADD_OPERATORS=$calls" -c "$bench/tflm.cc"
  echo '.section .rodata.network,"a"; .balign 16; .global network; network: .incbin "network.tflite"' |
    arm-none-eabi-gcc $flags -c -x assembler - -o network.o
  arm-none-eabi-g++ $flags -nostartfiles --specs=rdimon.specs -L "$board" -T "$script" -Wl,--gc-sections,-Map=network.map \
    -o network.elf tflm.o network.o peer_*.o startup.o measure.o -lm
  run_on_board network.elf >output 2>measured <input || { cat measured >&2; exit 1; }
  python3 "$bench/to_tflite.py" compare "$models/$path" output >log || { echo "$name: $(cat log)" >&2; exit 1; }
  read -r arena objects <<<"$(sed -nE 's/^arena ([0-9]+) objects ([0-9]+)/\1 \2/p' measured)"
  read -r stack instructions <<<"$(sed -nE 's/^stack ([0-9]+) .* instructions ([0-9]+)/\1 \2/p' measured)"
  # TFLM's and CMSIS-NN's own sections that are linked, and what an application calls them by.
  read -r text data <<<"$(python3 "$bench/linked.py" network.map)"
  echo "| $name | $text | $((arena + objects + data)) | $arena | $(stat -c %s network.tflite) | $stack | $instructions |"
done
