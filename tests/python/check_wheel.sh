#!/usr/bin/env bash
# Builds a wheel with the libraries of a build inside, installs it into a folder of its own and recognises a digit with that.
# Usage: check_wheel.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for python in python3 /usr/bin/python3; do
  "$python" -c 'import setuptools, pip, wheel, numpy' 2>/dev/null || continue
  mkdir "$work/tree" # so that nothing is left in this one
  cp -r pyproject.toml setup.py python include "$work/tree"
  BERTH_LIBRARY_DIR=$build "$python" -m pip wheel --quiet --no-build-isolation --no-deps --no-index -w "$work" "$work/tree" \
    >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  wheel=$(ls "$work"/berth_runtime-*-py3-none-*.whl)
  "$python" -m pip install --quiet --no-deps --no-index --target "$work/site" "$wheel" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  [ "$(find "$work/site/berth/lib" -name '*.so.*' | wc -l)" = 2 ] || { echo "the wheel lacks the libraries"; exit 1; }
  for file in py.typed __init__.pyi onnxruntime/__init__.pyi onnxruntime/capi/_pybind_state.py; do
    [ -e "$work/site/berth/$file" ] || { echo "the wheel lacks $file"; exit 1; }
  done
  env -u BERTH_LIBRARY_DIR PYTHONPATH="$work/site" "$python" - <<'PYTHON'
import berth, berth.onnxruntime, numpy as np
berth.onnxruntime.install()
from onnxruntime.capi.onnxruntime_pybind11_state import NoSuchFile
image = np.load("examples/digits/test_images.npy")[:1]
assert "site" in berth.__file__, berth.__file__
assert berth.load("examples/digits/digits.onnx", dims={"batch": 1})(image).argmax() == 2
PYTHON
  echo "$(basename "$wheel") of $(stat -c %s "$wheel") bytes"
  exit 0
done
echo "BERTH-SKIPPED 1: no python3 here has NumPy, pip, setuptools and wheel (python3-{numpy,pip,setuptools,wheel})"
