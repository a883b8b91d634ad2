#!/usr/bin/env bash
# Runs the conformance suite of the vulkan driver, a sample of the node models and whole models (../shared/models, where they are
# there) under Khronos' validation layers, which also put every kernel through SPIRV-Tools' validator. A message of theirs is a failure.
# Usage: vulkan_layers.sh BERTH TEST_CONFORMANCE NODE_MODELS [EVERY]
set -uo pipefail
cd "$(dirname "$0")/../.."
berth=$1 conformance=$2 node_models=$3 every=${4:-12}
layer=VK_LAYER_KHRONOS_validation
if ! ls /usr/share/vulkan/explicit_layer.d/*khronos_validation.json >/dev/null 2>&1; then
  case ",${BERTH_REQUIRE_DRIVERS-}," in
  *,vulkan,*) echo "the validation layers are not here (Debian: vulkan-validationlayers)"; exit 1 ;;
  esac
  echo "BERTH-SKIPPED 1: the validation layers are not here"
  exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
export VK_INSTANCE_LAYERS=$layer
# That the layer is there at all: the loader says what it inserts.
VK_LOADER_DEBUG=layer "$conformance" --filter 'vulkan/buffer__sizes' >"$log" 2>&1
grep -qi "insert.*$layer" "$log" || {
  echo "the loader does not use $layer"
  exit 1
}
"$conformance" --filter 'vulkan*/*' >"$log" 2>&1 || status=1
"$node_models" --device vulkan:0 --every "$every" --known tests/models/unsupported.txt \
  --known tests/models/expected_failures.txt >>"$log" 2>&1 || status=1
# Graphs, prepared lists, the virtual machine, copies to and from two other drivers.
verify() {
  local name=$1 model=../shared/models/$1/model.onnx folder
  shift
  [ -f "$model" ] || return 0
  for folder in "${model%/*}"/test_data_set_*; do set -- "$@" --data "$folder"; done
  "$berth" verify "$model" "$@" >>"$log" 2>&1 || { echo "$name: FAILS" && status=1; }
}
for name in mnist mnist_quantized rfb320; do verify $name --target "vulkan -host=cpu"; done
for name in silero_vad control_flow/{beam_search,loop_nested_if,scan_two_directions}; do
  verify $name --target "vulkan -host=cpu" --executor vm
done
verify mnist --target cpu,opencl,vulkan --pin op:Conv=vulkan:0 --pin op:Add=opencl:0
[ $status -eq 0 ] || grep -E "FAIL|PASSES|REFUSED|Synthesis" "$log"
if grep -E "Validation (Error|Warning)|VUID-|UNASSIGNED-" "$log" | cut -c1-600 | sort | uniq -c | sort -rn | head -20 | grep .; then
  status=1
fi
exit $status
