#!/usr/bin/env bash
# Verifies real models (../shared/models) with `berth verify` on the CPU, on OpenCL and on random splits of both.
# Usage: real_models.sh BERTH [all|small]. Counts what is not there as skipped. Exit status 1 when one fails.
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
failed=0
ran=0

# check NAME MODEL EXTRA... : every target; the random splits are seeded by the model's name, so they are the same each time.
check() {
  local name=$1 model=$2
  shift 2
  local targets=("cpu" "opencl -host=cpu")
  local split
  for split in 1 2; do targets+=("split $split"); done
  for target in "${targets[@]}"; do
    local options=(--target "$target")
    case $target in
    "opencl"*) options+=(--require opencl:0) ;;
    "split "*)
      options=(--target cpu,opencl)
      local ops
      ops=$("$berth" inspect "$model" --format=json | python3 -c '
import json, random, sys
ops = sorted(json.load(sys.stdin)["operators"])
r = random.Random("'"$name $target"'")
drop = {"Constant", "Shape", "ConstantOfShape"}
print("\n".join(o for o in ops if o not in drop and r.random() < 0.5))')
      for op in $ops; do options+=(--pin "op:$op=opencl:0"); done
      ;;
    esac
    ran=$((ran + 1))
    if ! output=$("$berth" verify "$model" "$@" "${options[@]}" --quiet 2>&1); then
      failed=$((failed + 1))
      echo "FAILS $name on $target: $(echo "$output" | tail -n 2 | tr '\n' ' ')"
    fi
  done
}

models=$shared/models
for name in mnist mnist_quantized tfl_helloworld super_resolution rfb320 rfb320_nopost; do
  data=()
  for folder in $models/$name/test_data_set_*; do data+=(--data "$folder"); done
  check $name $models/$name/model.onnx "${data[@]}"
done
light="bvlc_alexnet densenet121 inception_v1 inception_v2 resnet50 shufflenet squeezenet vgg19 zfnet512"
[ "$which" = small ] && light="squeezenet shufflenet"
for name in $light; do
  model=$work/light_$name.onnx
  [ -f "$model" ] || /usr/bin/python3 $shared/tools/make_light_seeded.py $models/light_$name/model.onnx "$model" >/dev/null
  data=$work/light_$name.data
  mkdir -p "$data"
  cp $models/light_seeded_input_0.pb "$data/input_0.pb"
  cp $models/light_$name/seeded/output_0.pb "$data/output_0.pb"
  check "light_$name" "$model" --data "$data"
done
echo "BERTH-TABLE real models: $((ran - failed)) of $ran verifications pass"
[ $failed -eq 0 ]
