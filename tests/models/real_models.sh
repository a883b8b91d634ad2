#!/usr/bin/env bash
# Verifies real models (../shared/models) with `berth verify` on the CPU, on OpenCL and on random splits of both, some also in
# one memory and as for a GPU, with work-groups and tiles in local memory. On Vulkan those that lavapipe runs in seconds, with
# splits with both others.
# Control flow and free shapes also under the virtual machine.
# Usage: real_models.sh BERTH [all|small|tiny]. Counts what is not there as skipped. Exit status 1 when one fails.
set -uo pipefail
cd "$(dirname "$0")/../.."
berth=$1
which=${2:-all}
shared=../shared
if [ ! -d $shared/models ]; then
  echo "BERTH-SKIPPED 1: ../shared/models is not there"
  exit 0
fi
work=${BERTH_MODEL_FOLDER:-build/models}
mkdir -p "$work"
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
count=0

# verify NAME TARGET MODEL EXTRA...: one verification, its verdict in a file of its own.
verify() {
  local file=$1 name=$2 target=$3 model=$4
  shift 4
  local options=(--target "$target")
  case $target in
  "opencl"*) options+=(--require opencl:0) ;;
  "vulkan"*) options+=(--require vulkan:0) ;;
  "vm split "* | "split "* | "shared "*) # operators drawn by a generator seeded by the model's name: the same split each time
    options=(--target cpu,opencl)
    local other=opencl:0
    [[ $target == "split cpu,vulkan" ]] && options=(--target cpu,vulkan) && other=vulkan:0
    [[ $target == "split opencl,vulkan" ]] && options=(--target "opencl,vulkan -host=cpu") && other=vulkan:0
    # Two devices of one kind: PoCL shows its one twice.
    [[ $target == *opencl,opencl* ]] && options=(--target opencl,opencl) && other=opencl:1 &&
      local -x POCL_DEVICES="pthread pthread"
    [[ $target == vm* ]] && options+=(--executor vm)
    # As on a chip whose GPU works in the CPU's memory: nothing is copied.
    [[ $target == shared* ]] && options=(--target "cpu,opencl -shares_host_memory=true")
    local ops
    ops=$("$berth" inspect "$model" --format=json | python3 -c '
import json, random, sys
ops = sorted(json.load(sys.stdin)["operators"])
r = random.Random("'"$name $target"'")
drop = {"Constant", "Shape", "ConstantOfShape"}
print("\n".join(o for o in ops if o not in drop and r.random() < 0.5))')
    for op in $ops; do options+=(--pin "op:$op=$other"); done
    ;;
  "vm "*) options=(--target "${target#vm }" --executor vm) ;;
  esac
  # LeakSanitizer stops a process's threads to look at them, and crashes itself where a thread of a vendor's library
  # just ends ("Tracer caught signal 11"): it has not looked then, and the verification is done again.
  local tries=0 passed=0
  while ((passed == 0 && ++tries <= 4)); do
    if output=$("$berth" verify "$model" "$@" "${options[@]}" --quiet 2>&1); then
      passed=1
    elif [[ $output != *"LeakSanitizer has encountered a fatal error"* ]]; then
      break
    fi
  done
  if ((passed)); then
    echo pass >"$file"
  else
    echo "FAILS $name on $target: $(echo "$output" | tail -n 2 | tr '\n' ' ')" >"$file"
  fi
}

# check SPLITS NAME MODEL EXTRA...: every target, as many at once as there are cores.
check() {
  local splits=$1 name=$2 model=$3 split target
  shift 3
  local targets=("cpu" "opencl -host=cpu")
  case $name in mnist | super_resolution | rfb320 | light_squeezenet)
    [ "$which" = tiny ] || targets+=("opencl -subgroup_size=32 -host=cpu" "shared 1") ;;
  esac
  case $name in mnist | mnist_quantized | tfl_helloworld | super_resolution | rfb320* | magika | light_squeezenet | light_shufflenet)
    [ "$which" = tiny ] || targets+=("vulkan -host=cpu") ;;
  esac
  case $name in mnist | mnist_quantized | rfb320)
    [ "$which" = tiny ] || targets+=("split cpu,vulkan" "split opencl,vulkan") ;;
  esac
  for split in $(seq "$splits"); do targets+=("split $split"); done
  for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
    count=$((count + 1))
    verify "$results/$count" "$name" "$target" "$model" "$@" &
  done
}

models=$shared/models
names="mnist mnist_quantized tfl_helloworld super_resolution rfb320 rfb320_nopost"
[ "$which" = tiny ] && names="mnist mnist_quantized tfl_helloworld rfb320"
for name in $names; do
  data=()
  for folder in $models/$name/test_data_set_*; do data+=(--data "$folder"); done
  check 2 $name $models/$name/model.onnx "${data[@]}"
done
# Models with branches and shapes that inputs decide: each set is compiled for itself.
dynamic="ppocr_cls silero_vad silero_vad_op18_ifless magika"
[ "$which" = small ] && dynamic="ppocr_cls silero_vad"
[ "$which" = tiny ] && dynamic=""
for name in $dynamic; do
  data=()
  for folder in $models/$name/test_data_set_*; do data+=(--data "$folder"); done
  check 0 $name $models/$name/model.onnx "${data[@]}"
done
# Control flow, sequences, shapes that depend on data: loaded once, for all sets.
vm_targets=("vm cpu" "vm opencl -host=cpu" "vm cpu,opencl")
[ "$which" = tiny ] && vm_targets=("vm cpu")
dynamic="silero_vad wespeaker magika llm_tiny/f32 llm_tiny/attention"
[ "$which" = small ] && dynamic="silero_vad llm_tiny/f32"
[ "$which" = tiny ] && dynamic=""
for name in $(cd $models && echo control_flow/*/) $dynamic; do
  data=()
  for folder in $models/$name/test_data_set_*; do data+=(--data "$folder"); done
  splits=()
  # Branches and loops whose operations are on two devices.
  [[ $name == control_flow/* && $which != tiny ]] && splits=("vm split 1" "vm split 2" "vm split opencl,opencl")
  # Large kernels in loops take lavapipe minutes.
  [[ $name != llm_tiny/* && $which != tiny ]] && splits+=("vm vulkan -host=cpu")
  for target in "${vm_targets[@]}" "${splits[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
    count=$((count + 1))
    verify "$results/$count" "$name" "$target" $models/$name/model.onnx "${data[@]}" &
  done
done
light="bvlc_alexnet densenet121 inception_v1 inception_v2 resnet50 shufflenet squeezenet vgg19 zfnet512"
[ "$which" = small ] && light="squeezenet shufflenet"
[ "$which" = tiny ] && light=""
for name in $light; do
  model=$work/light_$name.onnx
  [ -f "$model" ] || /usr/bin/python3 $shared/tools/make_light_seeded.py $models/light_$name/model.onnx "$model" >/dev/null
  data=$work/light_$name.data
  mkdir -p "$data"
  cp $models/light_seeded_input_0.pb "$data/input_0.pb"
  cp $models/light_$name/seeded/output_0.pb "$data/output_0.pb"
  check 1 "light_$name" "$model" --data "$data"
done
wait
grep -h FAILS "$results"/* || true
passed=$(cat "$results"/* | grep -c '^pass')
echo "BERTH-TABLE real models: $passed of $count verifications pass"
[ "$passed" -eq "$count" ]
