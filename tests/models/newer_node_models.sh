#!/usr/bin/env bash
# Runs the node models of opset 23 and later, which Debian's libonnx-testdata does not have: they are made by PyPI's onnx
# (the version below), where a python3 has it. Usage: newer_node_models.sh NODE_MODELS [options of node_models]
set -uo pipefail
cd "$(dirname "$0")/../.."
node_models=$1
shift
version=1.23.2
data=${BERTH_MODEL_FOLDER:-build/models}/onnx-$version
python=
for candidate in python3 /usr/bin/python3; do
  [ "$("$candidate" -c 'import onnx; print(onnx.__version__)' 2>/dev/null)" = $version ] && python=$candidate && break
done
if [ -z "$python" ]; then
  echo "BERTH-SKIPPED 1: no python3 here has onnx $version (pip install onnx==$version)"
  exit 0
fi
[ -f "$data/done" ] || "$python" tests/models/make_node_models.py "$data" --from 23 2>/dev/null || exit 1
touch "$data/done"
exec "$node_models" --data "$data" --known tests/models/unsupported_newer.txt \
  --known tests/models/expected_failures_newer.txt "$@"
