#!/usr/bin/env bash
# check_pictures.py with the first python3 that has ONNX and Pillow. Usage: run.sh BERTH
set -euo pipefail
cd "$(dirname "$0")"
for python in python3 /usr/bin/python3; do
  "$python" -c 'import numpy, onnx, PIL' 2>/dev/null || continue
  exec "$python" check_pictures.py "$1"
done
echo "BERTH-SKIPPED 1: no python3 here has ONNX and Pillow (Debian packages python3-onnx, python3-pil)"
