#!/usr/bin/env bash
# The tests of the Python package, with the first python3 that has NumPy.
# Usage: run.sh BUILD_FOLDER [unittest arguments...]
set -euo pipefail
cd "$(dirname "$0")/../.."
export BERTH_LIBRARY_DIR
BERTH_LIBRARY_DIR=$(cd "$1" && pwd)
shift
for python in python3 /usr/bin/python3; do
  "$python" -c 'import numpy' 2>/dev/null || continue
  [ $# -gt 0 ] || set -- discover -s tests/python
  PYTHONPATH=python:tests/python exec "$python" -X dev -m unittest "$@"
done
echo "BERTH-SKIPPED 1: no python3 here has NumPy (Debian package python3-numpy)"
