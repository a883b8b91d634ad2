#!/usr/bin/env bash
# Checks Berth on a machine with an NVIDIA GPU and leaves a report, and beside it (REPORT.costs) how long operations took by cuBLAS
# and cuDNN where these are here. Installs nothing: takes the build at BUILD_FOLDER (made by scripts/build.sh), or makes one where there is none.
# Usage: gpu_check.sh [--quick] [--models FOLDER] [--nodes FOLDER] [--goals FOLDER] [BUILD_FOLDER] [REPORT]     (default: build/release gpu_report.txt)
#        gpu_check.sh --pack OUT.tar.gz [BUILD_FOLDER]
# --quick: a first look: no operators, one device, and of the node models every hundredth.
# --models: every model below FOLDER that has data sets beside it (default: ../shared/models, models, build/models).
# --nodes: ONNX's node models (default: node-data, those of the Debian package libonnx-testdata).
# --goals: as of gpu_goals.sh.
# --pack: the build, the libraries that it needs beside the C library, NVRTC, models, and splits with the CPU built for this
# processor's instructions, in one file. On a bare machine with NVIDIA's driver (Linux, a C library as new as
# here): tar xf OUT.tar.gz && berth-gpu/scripts/gpu_check.sh
# Exit status 1 when a check fails or there is no GPU that Berth can use, 2 for wrong usage.
set -uo pipefail
cd "$(dirname "$0")/.."
roots=(../shared/models models build/models) goals=bench/gpu_goals quick="" every=4
nodes=/usr/share/libonnx-testdata/data/node
[ -d node-data ] && nodes=node-data
while [[ ${1:-} == -* ]]; do
  case $1 in
  --quick) quick=yes every=100 && shift && continue ;;
  --pack) exec scripts/gpu_pack.sh "${@:2}" ;;
  --models) roots=("${2:-}") ;;
  --nodes) nodes=${2:-} ;;
  --goals) goals=${2:-} ;;
  *) sed -n '2,13p' "$0" | cut -c3-; [[ $1 == -h || $1 == --help ]] && exit 0; exit 2 ;;
  esac
  [ -d "${2:-}" ] || { echo "gpu_check.sh: $1 takes a folder" >&2; exit 2; }
  shift 2
done
build=${1:-build/release}
report=${2:-gpu_report.txt}
failed=0
rm -f "$report.costs"
: >"$report" || exit 1
source scripts/gpu_report.sh

# verdict STATUS START NAME: a line about the command that has just run, with what it left out.
verdict() {
  local left_out
  left_out=$(sed -n 's/^BERTH-SKIPPED [0-9]*: *//p' "$output" | paste -sd ';')
  if [ "$1" -eq 0 ]; then
    say "ok      $3 ($((SECONDS - $2)) s)${left_out:+, without: $left_out}"
  else
    say "FAILED  $3: exit status $1 ($((SECONDS - $2)) s)"
    failed=1
  fi
  return "$1"
}

# check NAME COMMAND...: one line with the verdict; the output goes into the report.
check() {
  local start=$SECONDS
  logged "$@"
  verdict $? "$start" "$1"
}

skip() { say "skipped $1: $2"; }

if [ ! -x "$build/berth" ]; then
  cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release >>"$report" 2>&1 && cmake --build "$build" -j >>"$report" 2>&1 || {
    say "there is no build at $build, and none can be made: see $report"
    exit 1
  }
fi
berth=$build/berth
say "Berth on a GPU, $(date -u +%Y-%m-%dT%H:%MZ), $(git rev-parse --short HEAD 2>/dev/null || echo 'no git')"
[ -d "$build/lib" ] && export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$PWD/$build/lib

# library_here NAME: where the system's loader finds it.
library_here() {
  local folders folder
  IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
  { for folder in "${folders[@]}"; do find -L "$folder" -maxdepth 1 -name "$1.so*" 2>/dev/null; done
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -n "s/.*=> \(.*\/$1\.so.*\)/\1/p"; } | sed -n 1p
}
# The machine's own NVRTC is the one that its driver fits; the one of the pack is for a machine without.
nvrtc=$(library_here libnvrtc)
if [ -z "$nvrtc" ] && [ -d "$build/nvrtc" ]; then
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$PWD/$build/nvrtc
  nvrtc=$(library_here libnvrtc)
fi
say "NVRTC: ${nvrtc:-not here, and kernels are compiled by it: install the CUDA toolkit, or pip install nvidia-cuda-nvrtc and set LD_LIBRARY_PATH}"
[ ! -s missing.txt ] || say "$(sed 's/^/not in the pack: /' missing.txt)"
nvidia-smi >>"$report" 2>&1
"$berth" devices >>"$report" 2>&1
export BERTH_CACHE_DIR=${BERTH_CACHE_DIR:-$PWD/$build/kernel-cache} BERTH_REQUIRE_DRIVERS=cuda
devices=$("$berth" devices 2>/dev/null | grep -A1 -E '^  cuda:|^cuda:')
if ! grep -q '^  cuda:0' <<<"$devices"; then
  say "no CUDA device: $(tail -1 <<<"$devices")"
  exit 1
fi
grep -q emulated <<<"$devices" && say "THIS IS THE EMULATION OF THE TESTS, NOT A GPU"

count=$(grep -c '^  cuda:' <<<"$devices")
if [ -x "$build/tests/test_conformance" ]; then
  check "conformance" "$build/tests/test_conformance" --filter 'cuda/*'
  if [ "$count" -lt 2 ]; then
    skip "conformance, two devices" "this machine has one GPU"
  elif [ -n "$quick" ]; then
    skip "conformance, two devices" "--quick"
  else
    check "conformance, two devices" "$build/tests/test_conformance" --filter 'cuda_pair/*'
  fi
else
  skip conformance "the build has no tests"
fi
if [ -n "$quick" ]; then
  skip operators "--quick"
elif [ -x "$build/tests/test_cuda" ]; then
  check "operators" "$build/tests/test_cuda" --filter 'cuda_[afo]*/*'
else
  skip operators "the build has no tests"
fi
digits=(examples/digits/digits.onnx --dim batch=16)
check "digits" "$berth" run "${digits[@]}" --target cuda --require cuda:0 --profile
# The CPU's kernels of a split are compiled here, or come built.
compiler=$(command -v cc || command -v gcc || command -v clang)
if [ -n "$compiler" ]; then
  check "digits, split with the CPU" "$berth" run "${digits[@]}" --target cuda,cpu --pin op:Conv=cuda:0 --pin op:Gemm=cpu:0
else
  skip "splits with the CPU, but for those that come built" "no C compiler"
fi
# Their calls are compiled here.
libraries=()
[ -z "$compiler" ] || [ -z "$(library_here libcublasLt)" ] || libraries+=(cublas)
[ -z "$compiler" ] || [ -z "$(library_here libcudnn)" ] || libraries+=(cudnn)
libraries=$(IFS=, && echo "${libraries[*]}")
[ -n "$libraries" ] || skip "models with NVIDIA's libraries" "neither libcublasLt nor libcudnn is here, or no C compiler"
for program in splits/*.berth; do
  [ -f "$program" ] && check "split $(basename "$program" .berth)" "$berth" run "$program"
done

# time_model NAME MODEL INPUTS...: with the first data set's inputs, which decide dimensions that the model leaves open. The
# latency is of a run whose steps are not timed, so that they are launched as graphs.
time_model() {
  local name=$1 start=$SECONDS status run=("$berth" run "$2" --target cuda --warmup 3 --repeat 20)
  local inputs=("${@:3}")
  logged "time $name" "${run[@]}" "${inputs[@]/#/--input=}"
  status=$?
  # `berth run` takes tensors from files, and the model says whether it needs others.
  if [ $status -ne 0 ] && [[ $("$berth" run "$2" --target cuda 2>&1) == *"is a sequence or an optional value"* ]]; then
    skip "time $name" "an input is a sequence or an optional value, which \`berth run\` does not take from a file"
    return 1
  fi
  verdict $status "$start" "time $name" || return
  say "        $name: $(grep '^latency' "$output")"
  check "profile of $name" "${run[@]}" "${inputs[@]/#/--input=}" --profile
}

# time_with_libraries NAME MODEL INPUTS...: what of the model NVIDIA's libraries compute faster is measured, and they compute that.
time_with_libraries() {
  local name=$1 target="cuda -libs=$libraries" costs=$report.costs inputs=("${@:3}")
  check "measure $libraries for $name" "$berth" calibrate "$2" --target "$target" --duration 500ms --output "$costs" || return
  check "time $name with $libraries" "$berth" run "$2" --target "$target" --costs "$costs" --warmup 3 --repeat 20 "${inputs[@]/#/--input=}" &&
    say "        $name with $libraries: $(grep '^latency' "$output")"
}

# check_model NAME MODEL DATA...
check_model() {
  local name=$1 model=$2 pattern options rest verify inputs operators op pins=()
  local data=("${@:3}")
  verify=("$berth" verify "$model" "${data[@]/#/--data=}")
  while read -r pattern options; do
    [[ $pattern != \#* && $name == $pattern ]] || continue
    read -ra rest <<<"$options" # options, then the reason
    while [[ ${rest[0]} == --* ]]; do verify+=("${rest[@]:0:2}") && rest=("${rest[@]:2}"); done
    break
  done <tests/models/tolerances.txt
  check "verify $name" "${verify[@]}" --target cuda
  operators=$("$berth" inspect "$model" 2>>"$report" | sed -n 's/^operators [0-9]*://p')
  for op in Conv MatMul Gemm; do [[ $operators == *" $op "* ]] && pins+=(--pin "op:$op=cuda:0"); done
  [ -n "$compiler" ] && [ ${#pins[@]} -gt 0 ] &&
    check "verify $name, convolutions and products on the GPU" "${verify[@]}" --target cuda,cpu "${pins[@]}"
  readarray -t inputs < <(find -L "${data[0]}" -name 'input_*.pb' | sort -V)
  time_model "$name" "$model" "${inputs[@]}" && [ -n "$libraries" ] && time_with_libraries "$name" "$model" "${inputs[@]}"
}

# Every model with data sets beside it, as ONNX's models come, however deep.
models=0
for root in "${roots[@]}"; do
  while read -r model; do
    folder=$(dirname "$model")
    readarray -t data < <(find -L "$folder" -maxdepth 1 -type d -name 'test_data_set_*' | sort -V)
    [ ${#data[@]} -gt 0 ] && models=$((models + 1)) && check_model "${folder#"$root"/}" "$model" "${data[@]}"
  done < <(find -L "$root" -name '*.onnx' 2>/dev/null | sort)
done
[ $models -gt 0 ] || skip "real models" "none with data sets beside it in ${roots[*]} (--models FOLDER names others)"

if [ ! -x "$build/tests/node_models" ]; then
  skip "node models" "the build has no tests"
elif ! compgen -G "$nodes/*/model.onnx" >/dev/null; then
  skip "node models" "none in $nodes (Debian package libonnx-testdata)"
else
  check "node models" "$build/tests/node_models" --data "$nodes" --device cuda:0 --every $every \
    --known tests/models/unsupported.txt --known tests/models/expected_failures.txt
fi

# What is wanted of single kernels and of launches, beside cuBLAS and the bandwidth measured here.
scripts/gpu_goals.sh "$build" "$report" "$goals" || failed=1
# Beside ONNX Runtime on the same GPU, where its package for CUDA is there.
if python3 -c 'import numpy, onnx, onnxruntime as o, sys; sys.exit("CUDAExecutionProvider" not in o.get_available_providers())' 2>/dev/null &&
  [ -d ../shared/models ]; then
  check "ONNX Runtime on CUDA" env BERTH="$berth" python3 bench/compare_ort.py --models ../shared --threads 1 --target cuda --provider CUDAExecutionProvider \
    --only 'resnet50,light_*,mobilenetv2,bert' && grep -E '^(model  |[a-z0-9_]+ +1 |threads 1:)' "$output" | tail -14
else
  skip "ONNX Runtime on CUDA" "its package for CUDA (onnxruntime-gpu), numpy, onnx or the models are not there"
fi
say "report: $report"
exit $failed
