#!/usr/bin/env bash
# check_machines.py with the first python3 that has ONNX. Usage: run.sh BERTH
set -euo pipefail
cd "$(dirname "$0")"
for python in python3 /usr/bin/python3; do
  "$python" -c 'import numpy, onnx' 2>/dev/null || continue
  exec "$python" check_machines.py "$1"
done
echo "BERTH-SKIPPED 1: no python3 here has ONNX (Debian package python3-onnx)"
