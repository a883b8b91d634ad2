#!/usr/bin/env bash
# Checks Berth on a machine with an NVIDIA GPU and leaves a report. Installs nothing: takes the build at BUILD_FOLDER (made by
# scripts/build.sh), or makes one where there is none.
# Usage: gpu_check.sh [BUILD_FOLDER] [REPORT]     (default: build/release gpu_report.txt)
#        gpu_check.sh --pack OUT.tar.gz [BUILD_FOLDER]
# --pack: the build, the libraries that it needs beside the C library, models, and splits with the CPU built for this
# processor's instructions, in one file. On a bare machine with NVIDIA's driver and NVRTC (Linux, a C library as new as
# here): tar xf OUT.tar.gz && berth-gpu/scripts/gpu_check.sh
# Exit status 1 when a check fails, 2 when there is no GPU that Berth can use.
set -uo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
-h | --help) sed -n '2,9p' "$0" | cut -c3-; exit 0 ;;
--pack) exec scripts/gpu_pack.sh "${@:2}" ;;
esac
build=${1:-build/release}
report=${2:-gpu_report.txt}
failed=0
: >"$report" || exit 1

say() { printf '%s\n' "$*" | tee -a "$report"; }

# check NAME COMMAND...: one line with the verdict; the output goes into the report.
check() {
  local name=$1 start=$SECONDS status
  shift
  { echo; echo "== $name: $*"; } >>"$report"
  timeout 1800 "$@" >>"$report" 2>&1
  status=$?
  if [ $status -eq 0 ]; then
    say "ok      $name ($((SECONDS - start)) s)"
  else
    say "FAILED  $name: exit status $status ($((SECONDS - start)) s)"
    failed=1
  fi
}

if [ ! -x "$build/berth" ]; then
  cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release >>"$report" 2>&1 && cmake --build "$build" -j >>"$report" 2>&1 || {
    say "there is no build at $build, and none can be made: see $report"
    exit 1
  }
fi
say "Berth on a GPU, $(date -u +%Y-%m-%dT%H:%MZ), $(git rev-parse --short HEAD 2>/dev/null || echo 'no git')"
[ -d "$build/lib" ] && export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$PWD/$build/lib
nvidia-smi >>"$report" 2>&1
"$build/berth" devices >>"$report" 2>&1
export BERTH_CACHE_DIR=${BERTH_CACHE_DIR:-$PWD/$build/kernel-cache} BERTH_REQUIRE_DRIVERS=cuda
devices=$("$build/berth" devices 2>/dev/null | grep -A1 -E '^  cuda:|^cuda:')
if ! grep -q '^  cuda:0' <<<"$devices"; then
  say "no CUDA device: $(tail -1 <<<"$devices")"
  exit 2
fi
grep -q emulated <<<"$devices" && say "THIS IS THE EMULATION OF THE TESTS, NOT A GPU"

count=$(grep -c '^  cuda:' <<<"$devices")
if [ -x "$build/tests/test_conformance" ]; then
  check "conformance" "$build/tests/test_conformance" --filter 'cuda/*'
  [ "$count" -ge 2 ] && check "conformance, two devices" "$build/tests/test_conformance" --filter 'cuda_pair/*'
fi
[ -x "$build/tests/test_cuda" ] && check "operators" "$build/tests/test_cuda" --filter 'cuda_[afo]*/*'
check "digits" "$build/berth" run examples/digits/digits.onnx --dim batch=16 --target cuda --require cuda:0 --profile
# The CPU's kernels of a split are compiled here, or come built.
compiler=$(command -v cc || command -v gcc || command -v clang)
if [ -n "$compiler" ]; then
  check "digits, split with the CPU" "$build/berth" run examples/digits/digits.onnx --dim batch=16 --target cuda,cpu \
    --pin op:Conv=cuda:0 --pin op:Gemm=cpu:0
else
  say "no C compiler: of splits with the CPU, those that come built"
fi
for program in splits/*.berth; do
  [ -f "$program" ] && check "split $(basename "$program" .berth)" "$build/berth" run "$program"
done

# Every folder with a model and data sets, as ONNX's models come.
for folder in ../shared/models/*/ models/*/ build/models/*/; do
  model=$(find "$folder" -maxdepth 2 -name '*.onnx' 2>/dev/null | sort | head -1)
  data=$(find "$folder" -maxdepth 3 -type d -name 'test_data_set_*' 2>/dev/null | sort | head -1)
  [ -n "$model" ] && [ -n "$data" ] || continue
  name=$(basename "$folder")
  check "verify $name" "$build/berth" verify "$model" --data "$data" --target cuda
  [ -n "$compiler" ] && check "verify $name, convolutions and products on the GPU" "$build/berth" verify "$model" --data "$data" --target cuda,cpu \
    --pin op:Conv=cuda:0 --pin op:MatMul=cuda:0
  check "time $name" "$build/berth" run "$model" --target cuda --warmup 3 --repeat 20
  say "        $(grep '^latency' "$report" | tail -1)"
  check "profile of $name" "$build/berth" run "$model" --target cuda --warmup 3 --repeat 20 --profile
done
if [ -x "$build/tests/node_models" ]; then
  check "node models" "$build/tests/node_models" --device cuda:0 --every 4
fi

# What is wanted of single kernels and of launches, beside cuBLAS and the bandwidth measured here.
scripts/gpu_goals.sh "$build" "$report" || failed=1
# Beside ONNX Runtime on the same GPU, where its package for CUDA is there.
if python3 -c 'import numpy, onnx, onnxruntime as o, sys; sys.exit("CUDAExecutionProvider" not in o.get_available_providers())' 2>/dev/null &&
  [ -d ../shared/models ]; then
  check "ONNX Runtime on CUDA" env BERTH="$build/berth" python3 bench/compare_ort.py --models ../shared --threads 1 --target cuda --provider CUDAExecutionProvider \
    --only 'resnet50,light_*,mobilenetv2,bert'
  grep -E '^(model  |[a-z0-9_]+ +1 |threads 1:)' "$report" | tail -14
else
  say "not compared with ONNX Runtime: its package for CUDA (onnxruntime-gpu), numpy, onnx or the models are not there"
fi
say "report: $report"
exit $failed
