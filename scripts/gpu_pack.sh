#!/usr/bin/env bash
# Packs what scripts/gpu_check.sh needs on a bare machine: see there (--pack).
# Usage: gpu_pack.sh OUT.tar.gz [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '3p' "$0" | cut -c3-; exit 1; }
out=$(realpath -m "$1")
build=${2:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/berth-gpu
mkdir -p "$root/scripts" "$root/examples" "$root/bench" "$root/build/release/tests" "$root/build/release/bench" "$root/build/release/lib" "$root/models" "$root/splits"

cp scripts/gpu_check.sh scripts/gpu_goals.sh "$root/scripts/"
cp -r examples/digits "$root/examples/"
cp -r bench/gpu_goals "$root/bench/"
cp "$build/berth" "$root/build/release/"
cp "$build/bench/cublas_products" "$root/build/release/bench/"
for test in test_conformance test_cuda node_models; do
  [ -x "$build/tests/$test" ] && cp "$build/tests/$test" "$root/build/release/tests/"
done

# All libraries but those of the C library, which NVIDIA's driver shares with the process.
for program in "$root/build/release/berth" "$root"/build/release/tests/* "$root/build/release/bench/cublas_products"; do
  ldd "$program" | awk '$2 == "=>" { if ($3 == "not") exit 1; print $3 }' || {
    echo "gpu_pack.sh: $program needs a library that is not here" >&2
    exit 1
  }
done | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' |
  while read -r library; do cp -L "$library" "$root/build/release/lib/"; done

# Models with data sets, and splits with the CPU, whose kernels a bare machine cannot compile.
for folder in ../shared/models/*/; do
  [ -n "$(find "$folder" -maxdepth 3 -type d -name 'test_data_set_*' 2>/dev/null | head -1)" ] && cp -rL "$folder" "$root/models/"
done
"$build/berth" build examples/digits/digits.onnx --dim batch=16 --target cuda,cpu --pin op:Conv=cuda:0 --pin op:Gemm=cpu:0 \
  -o "$root/splits/digits.berth" >/dev/null 2>&1 || { echo "gpu_pack.sh: cannot build the split of digits" >&2; exit 1; }
tar -C "$work" -czf "$out" berth-gpu
echo "$out: $(du -h "$out" | cut -f1)"
