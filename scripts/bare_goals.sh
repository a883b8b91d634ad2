#!/usr/bin/env bash
# Plain C against the goals of docs/bare.md, on a Cortex-M4 or M55 (QEMU): every build beside onnx2c, CMSIS-NN and TFLM, met or not.
# Usage: scripts/bare_goals.sh MODELS ONNX2C CMSIS_NN TFLM [m4|m55]      as for scripts/bare_sizes.sh, bare_onnx2c.sh, bare_peers.sh and bare_tflm.sh
set -euo pipefail
case "${1:-}" in
"" | -h | --help) sed -n '2,3p' "$0" | cut -c3-; exit 0 ;;
esac
models=$(realpath "$1") onnx2c=$(realpath "$2") cmsis=$(realpath "$3") tflm=$(realpath "$4")
core=${5:-m4}
cd "$(dirname "$0")/.."
tables=$(mktemp -d)
trap 'rm -rf "$tables"' EXIT
for build in speed size least rolling size-rolling; do scripts/bare_sizes.sh "$models" $build "$core" >"$tables/$build"; done
scripts/bare_onnx2c.sh "$onnx2c" "$models" "$core" >"$tables/onnx2c"
scripts/bare_peers.sh "$cmsis" "$core" >"$tables/cmsis"
OPTIMISE=-O3 scripts/bare_peers.sh "$cmsis" "$core" >"$tables/cmsis3"
scripts/bare_tflm.sh "$tflm" "$models" "$core" >"$tables/tflm"
OPTIMISE=-O3 scripts/bare_tflm.sh "$tflm" "$models" "$core" >"$tables/tflm3"
python3 bench/bare/goals.py speed="$tables/speed" size="$tables/size" least="$tables/least" \
  rolling="$tables/rolling" "size, rolling=$tables/size-rolling" -- \
  onnx2c="$tables/onnx2c" CMSIS-NN="$tables/cmsis" "CMSIS-NN -O3=$tables/cmsis3" TFLM="$tables/tflm" "TFLM -O3=$tables/tflm3"
