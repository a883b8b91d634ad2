#!/usr/bin/env bash
# Runs a script with the first python3 that has these modules. Usage: with_python.sh MODULE,... SCRIPT [ARGUMENT...]
set -euo pipefail
modules=$1
shift
for python in python3 /usr/bin/python3; do
  "$python" -c "import $modules" 2>/dev/null || continue
  exec "$python" "$@"
done
echo "BERTH-SKIPPED 1: no python3 here has $modules (Debian: python3-numpy, python3-onnx, python3-pil)"
