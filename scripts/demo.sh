#!/usr/bin/env bash
# Installs what is missing (Debian, root or sudo), builds Berth, and runs the digits example: a small convolutional network
# whose convolutions run on OpenCL and the rest on the CPU.
set -euo pipefail
case "${1:-}" in
"") ;;
-h | --help) sed -n '2,3p' "$0" | cut -c3-; exit 0 ;;
*) echo "unknown option '$1'; see --help" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
scripts/build.sh release
echo
echo "== the model =="
build/release/berth inspect examples/digits/digits.onnx
echo
echo "== the plan: convolutions on OpenCL, the rest on the CPU =="
build/release/berth plan examples/digits/digits.onnx --target cpu,opencl --pin 'op:Conv=opencl:0' --dim batch=360
echo
echo "== running it =="
build/release/examples/digits
