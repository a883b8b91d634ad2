#!/usr/bin/env bash
# Runs the conformance suite of the vulkan driver and a sample of the node models under Khronos' validation layers, which also put
# every kernel through SPIRV-Tools' validator. A message of theirs is a failure.
# Usage: vulkan_layers.sh TEST_CONFORMANCE NODE_MODELS [EVERY]
set -uo pipefail
cd "$(dirname "$0")/../.."
conformance=$1 node_models=$2 every=${3:-12}
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
[ $status -eq 0 ] || grep -E "FAIL|PASSES|REFUSED|Synthesis" "$log"
if grep -E "Validation (Error|Warning)|VUID-|UNASSIGNED-" "$log" | cut -c1-600 | sort | uniq -c | sort -rn | head -20 | grep .; then
  status=1
fi
exit $status
