#!/usr/bin/env bash
# Builds Debian packages of Berth into build/release/packages (what each holds: cmake/packages.cmake). Usage: scripts/package.sh
# Install them with: apt-get install ./build/release/packages/*.deb
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
"") ;;
-h | --help) sed -n '2,3p' "$0" | cut -c3-; exit 0 ;;
*) echo "unknown option '$1'; see --help" >&2; exit 2 ;;
esac
scripts/build.sh release
rm -rf build/release/packages
(cd build/release && cpack -G DEB >packages.log 2>&1) || { cat build/release/packages.log >&2; exit 1; }
ls build/release/packages/*.deb
