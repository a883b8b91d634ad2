#!/usr/bin/env bash
# What is wanted of single kernels and of launches on a GPU, a line each with what was measured, beside cuBLAS (bench/cublas_products,
# where libcublas is there) or the bandwidth measured before. Part of gpu_check.sh.
# Usage: gpu_goals.sh BUILD_FOLDER REPORT [GOALS_FOLDER]     (default: bench/gpu_goals, whose file `goals` is the list)
# Exit status 1 where something cannot be measured. A figure that is not reached is said, and is no failure.
set -uo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '4p' "$0" | cut -c3-; exit 2; }
build=$1 report=$2 goals=${3:-bench/gpu_goals} failed=0

source scripts/gpu_report.sh
[ -r "$goals/goals" ] || { say "FAILED  goals: there is no list of them at $goals/goals"; exit 1; }

# measure NAME COMMAND...: the output is in $output then.
measure() {
  logged "goal $1" "${@:2}" && return
  say "FAILED  goal $1: exit status $?"
  failed=1
  return 1
}

# The mean time of all kernels on the device, by the profile that was measured; empty: there is none.
kernels_ms() {
  awk '/^profile:/ { on = 1; sum = 0; count = 0; next }
    on && NF < 7 { on = 0 }
    on && $7 ~ /^cuda:/ && $NF != "(copy)" { sum += $1; count++ }
    END { if (count) printf "%.4f\n", sum }' "$output"
}

# The latency that was measured. Without --profile command lists are launched as graphs.
latency_ms() { sed -n 's/^latency: median \([0-9.]*\) ms.*/\1/p' "$output"; }

calculate() { awk "BEGIN { printf \"%.${2:-1}f\", $1 }"; }
reached() { awk "BEGIN { print ($1) ? \"reached\" : \"NOT reached\" }"; }

# product MS ROWS COLUMNS TERMS TYPE PER_CENT
product() {
  local text cublas
  text="$1 ms on the device, $(calculate "2e-9 * $2 * $3 * $4 / $1") TFLOP/s"
  if cublas=$("$build/bench/cublas_products" "$2" "$3" "$4" "$5" 2>>"$report"); then
    text+=", cuBLAS $cublas ms: $(calculate "100 * $cublas / $1") % of its speed, $6 % wanted: $(reached "100 * $cublas >= $6 * $1")"
  else
    text+=", not compared with cuBLAS: $(tail -1 "$report")"
  fi
  echo "$text"
}

bandwidth=0
while read -r name kind first second third fourth fifth; do
  [[ $name =~ ^(#.*)?$ ]] && continue
  run=("$build/berth" run "$goals/$name.txt" --target cuda --require cuda:0 --warmup 3 --repeat 20)
  measure "$name" "${run[@]}" --profile || continue
  ms=$(kernels_ms)
  if [ -z "$ms" ] || [ "$(reached "$ms > 0")" != reached ]; then
    say "FAILED  goal $name: no time of a kernel in the profile"
    failed=1
    continue
  fi
  case $kind in
  product) say "goal    $name: $(product "$ms" "$first" "$second" "$third" "$fourth" "$fifth")" ;;
  bandwidth)
    bandwidth=$(calculate "$first / $ms / 1e6" 3)
    say "goal    $name: $ms ms on the device, $bandwidth GB/s"
    ;;
  bytes)
    if [ "$bandwidth" = 0 ]; then
      say "FAILED  goal $name: the bandwidth that it is a share of was not measured"
      failed=1
      continue
    fi
    rate=$(calculate "$first / $ms / 1e6" 3)
    say "goal    $name: $ms ms on the device, $rate GB/s: $(calculate "100 * $rate / $bandwidth") % of the bandwidth, $second % wanted: $(reached "100 * $rate >= $second * $bandwidth")"
    ;;
  launches)
    measure "$name" "${run[@]}" || continue
    all=$(calculate "1000 * $(latency_ms) / $first" 2)
    own=$(calculate "$all - 1000 * $ms / $first" 2)
    # Events around each kernel may take longer than its launch by a graph: then only what both take is known.
    if [ "$(reached "$own >= 0")" = reached ]; then
      say "goal    $name: $own us for each of $first steps beside its kernel, $all us with it, $second us wanted: $(reached "$own <= $second")"
    else
      say "goal    $name: at most $all us for each of $first steps, its kernel with it, $second us wanted: $([ "$(reached "$all <= $second")" = reached ] && echo reached || echo "not shown")"
    fi
    ;;
  *) say "FAILED  $goals/goals: there is no kind of goal \"$kind\"" && failed=1 ;;
  esac
done <"$goals/goals"
exit $failed
