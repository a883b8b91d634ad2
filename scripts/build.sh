#!/usr/bin/env bash
# Builds Berth. Usage: scripts/build.sh [release|run|debug|tsan|fuzz] [TARGET...]. The command is then at build/PRESET/berth.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
case "$preset" in
release | run | debug | tsan | fuzz) ;;
-h | --help) sed -n '2p' "$0" | cut -c3-; exit 0 ;;
*) echo "unknown preset '$preset'; known: release, run, debug, tsan, fuzz" >&2; exit 2 ;;
esac
scripts/install_deps.sh
cmake --preset "$preset" >/dev/null
shift || true
cmake --build "build/$preset" ${1:+--target "$@"}
