#!/usr/bin/env bash
# What takes too long for every test run: every call of the system failing once in every command, many changed program
# files, the newest node models on every device, CUDA's kernels fully optimised, random models beside ONNX Runtime (where
# Python has it), applications of ONNX Runtime over Berth, and each fuzz target for some minutes. Ends with the first thing
# that is wrong.
# Usage: scripts/nightly.sh [MINUTES]     of each fuzz target (default 10)
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
-h | --help) sed -n '2,6p' "$0" | cut -c3-; exit 0 ;;
esac
scripts/build.sh release
for kind in memory files helper cut; do
  tests/faults/fail_each.py build/release/berth build/release/tests/libfail_at.so --kind "$kind"
done
for device in opencl:0 vulkan:0; do  # all of which the test run takes a sample
  tests/models/newer_node_models.sh build/release/tests/node_models --device $device
done
# As they are used; the test run compiles them as quickly as nvcc can.
tests/cuda/model_kernels.py build/release/berth build/release/cuda_optimised_kernels --optimise
build/release/tests/program_mutants 100000 "$(date +%s)"
if python3 -c 'import onnxruntime, onnx' 2>/dev/null; then
  tests/differential/random_graphs.py --seed "$(date +%s)" --count 1000
  tests/differential/random_fused.py --seed "$(date +%s)" --count 500
  tests/differential/random_rare.py --seed "$(date +%s)" --count 300
  tests/differential/random_ml.py --seed "$(date +%s)" --count 300
  tests/differential/random_forms.py --seed "$(date +%s)" --count 500
  tests/differential/random_flow.py --seed "$(date +%s)" --count 500
  tests/differential/random_flow.py --seed "$(date +%s)" --count 200 --target cpu,opencl --split
  tests/bare/random_nets.py --seed "$(( $(date +%s) % 1000000 ))" --count 100
  tests/bare/random_nets.py --seed 516 --count 1 --only budget  # the least found with one byte needs more where it is given
else
  echo "random models beside ONNX Runtime: left out, python3 has no onnxruntime and onnx"
fi
tests/python/check_packages.sh build/release
scripts/fuzz.sh "${1:-10}"
