#!/usr/bin/env bash
# Packs what scripts/gpu_check.sh needs on a bare machine: see there (--pack).
# Usage: gpu_pack.sh OUT.tar.gz [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '3p' "$0" | cut -c3-; exit 2; }
out=$(realpath -m "$1")
build=${2:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/berth-gpu
mkdir -p "$root/scripts" "$root/examples" "$root/bench" "$root/build/release/tests" "$root/build/release/bench" "$root/build/release/lib" "$root/build/release/nvrtc" \
  "$root/models" "$root/splits" "$root/tests/models"
missing=()

cp scripts/gpu_check.sh scripts/gpu_goals.sh scripts/gpu_report.sh "$root/scripts/"
cp tests/models/{unsupported,expected_failures,tolerances}.txt "$root/tests/models/"
cp -r examples/digits "$root/examples/"
cp -r bench/gpu_goals "$root/bench/"
cp "$build/berth" "$root/build/release/"
cp "$build/bench/cublas_products" "$root/build/release/bench/"
for test in test_conformance test_cuda node_models; do
  if [ -x "$build/tests/$test" ]; then
    cp "$build/tests/$test" "$root/build/release/tests/"
  else
    missing+=("the test program $test: not in $build")
  fi
done

# All libraries but those of the C library, which NVIDIA's driver shares with the process.
for program in "$root/build/release/berth" "$root"/build/release/tests/* "$root/build/release/bench/cublas_products"; do
  ldd "$program" | awk '$2 == "=>" { if ($3 == "not") exit 1; print $3 }' || {
    echo "gpu_pack.sh: $program needs a library that is not here" >&2
    exit 1
  }
done | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' |
  while read -r library; do cp -L "$library" "$root/build/release/lib/"; done

# NVRTC and its built-in headers, both among what the CUDA toolkit's licence (Attachment A) lets a program bring along, with that
# licence; gpu_check.sh takes them where the machine has none of its own. The newest that Berth looks for.
nvrtc=""
for folder in ${CUDA_HOME:+"$CUDA_HOME/lib64"} /usr/local/cuda/lib64 $(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -n 's/.*=> \(.*\)\/libnvrtc\.so.*/\1/p'); do
  for version in 13 12 11.2; do
    [ -z "$nvrtc" ] && [ -f "$folder/libnvrtc.so.$version" ] && nvrtc=$folder/libnvrtc.so.$version
  done
done
if [ -n "$nvrtc" ]; then
  cp -L "$nvrtc" "$root/build/release/nvrtc/"
  find -L "$(dirname "$nvrtc")" -maxdepth 1 -name "libnvrtc-builtins.so.${nvrtc##*.so.}*" -exec cp -L {} "$root/build/release/nvrtc/" \;
  licence=$(find -L "$(dirname "$nvrtc")/.." -maxdepth 4 \( -ipath '*nvrtc*/License.txt' -o -name EULA.txt \) 2>/dev/null | sed -n 1p)
  [ -z "$licence" ] || cp "$licence" "$root/build/release/nvrtc/"
else
  missing+=("NVRTC: no CUDA toolkit here; the machine needs one, or pip install nvidia-cuda-nvrtc")
fi

# ONNX's node models, where gpu_check.sh looks for them.
if [ -d /usr/share/libonnx-testdata/data/node ]; then
  cp -r /usr/share/libonnx-testdata/data/node "$root/node-data"
else
  missing+=("the node models: no /usr/share/libonnx-testdata/data/node (Debian package libonnx-testdata)")
fi

# Models with data sets, and splits with the CPU, whose kernels a bare machine cannot compile.
for folder in ../shared/models/*/; do
  [ -n "$(find "$folder" -maxdepth 3 -type d -name 'test_data_set_*' 2>/dev/null | head -1)" ] && cp -rL "$folder" "$root/models/"
done
"$build/berth" build examples/digits/digits.onnx --dim batch=16 --target cuda,cpu --pin op:Conv=cuda:0 --pin op:Gemm=cpu:0 \
  -o "$root/splits/digits.berth" >/dev/null 2>&1 || { echo "gpu_pack.sh: cannot build the split of digits" >&2; exit 1; }
[ -n "$(ls "$root/models")" ] || missing+=("models: none with data sets in ../shared/models")
# Said here, and in the report of the machine.
printf '%s\n' "${missing[@]}" | sed '/^$/d' >"$root/missing.txt"
sed 's/^/not packed: /' "$root/missing.txt"
tar -C "$work" -czf "$out" berth-gpu
echo "$out${nvrtc:+, with $(basename "$nvrtc")}: $(du -h "$out" | cut -f1)"
