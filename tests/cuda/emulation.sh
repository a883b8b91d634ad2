#!/usr/bin/env bash
# Runs a test program with the emulated libcuda and NVRTC of the build in place of NVIDIA's.
# Usage: emulation.sh FOLDER COMMAND [ARGUMENT...]
set -euo pipefail
folder=$1
shift
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export BERTH_REQUIRE_DRIVERS=cuda
# Kernels that a test run has compiled before, in another build, are not compiled again.
if [ -n "${BERTH_CACHE_DIR:-}" ]; then
  export BERTH_EMULATION_KERNELS=$(realpath -m "$BERTH_CACHE_DIR/../emulated-kernels")
  mkdir -p "$BERTH_EMULATION_KERNELS"
fi
exec "$@"
