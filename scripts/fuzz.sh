#!/usr/bin/env bash
# Runs every fuzz target. Usage: scripts/fuzz.sh [MINUTES per target, default 5]. New inputs are kept in build/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-5}
case "$minutes" in
-h | --help) sed -n '2p' "$0" | cut -c3-; exit 0 ;;
'' | *[!0-9]*) echo "\"$minutes\" is no number of minutes; see --help" >&2; exit 2 ;;
esac
scripts/build.sh fuzz
failed=0
for source in tests/fuzz/*.c; do
  name=$(basename "$source" .c)
  program=build/fuzz/tests/fuzz_$name
  [ -x "$program" ] || continue
  mkdir -p "build/fuzz/found/$name"
  echo "== $name: $minutes minutes =="
  "$program" -max_total_time=$((minutes * 60)) -print_final_stats=1 "build/fuzz/found/$name" "tests/fuzz/corpus/$name" || failed=1
done
exit $failed
