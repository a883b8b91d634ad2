#!/usr/bin/env bash
# Configures this tree as somebody who knows no presets does: the code is optimised, and a warning of a compiler that nobody
# here has tried does not stop the build. With the presets' option, warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
configure() { # FOLDER OPTION...: into $work/FOLDER
  local folder=$1
  shift
  cmake -S . -B "$work/$folder" -DBERTH_TESTS=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}
configure plain
grep -q 'memory/.*\.c' "$work/plain/compile_commands.json" || { echo "no commands of the compiler"; exit 1; }
grep -q -- '-O2' "$work/plain/compile_commands.json" || { echo "a plain configuration does not optimise"; exit 1; }
if grep -q -- '-Werror' "$work/plain/compile_commands.json"; then echo "a plain configuration stops at warnings"; exit 1; fi
configure given -DCMAKE_BUILD_TYPE=Release
grep -q -- '-O3' "$work/given/compile_commands.json" || { echo "the given kind of build is not taken"; exit 1; }
configure strict -DBERTH_WERROR=ON
grep -q -- '-Werror' "$work/strict/compile_commands.json" || { echo "BERTH_WERROR does nothing"; exit 1; }
[ "$(grep -c '"BERTH_WERROR": "ON"' CMakePresets.json)" = 1 ] || { echo "the presets take warnings"; exit 1; }
