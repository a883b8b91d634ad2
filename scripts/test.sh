#!/usr/bin/env bash
# Installs what is missing (Debian, root or sudo), builds Berth, and runs all tests. Ends with "N passed, N failed".
# Usage: scripts/test.sh [--fast]      --fast: without the sanitizer build
set -uo pipefail
cd "$(dirname "$0")/.."
fast=0
case "${1:-}" in
--fast) fast=1 ;;
-h | --help) sed -n '2,3p' "$0" | cut -c3-; exit 0 ;;
"") ;;
*) echo "unknown option '$1'; see --help" >&2; exit 2 ;;
esac
passed=0
failed=0
skipped=0
failures=()
details=() # of programs that failed without a failed case: what they printed that looks like a reason

note() { # name, exit status
  if [ "$2" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    failures+=("$1")
  fi
}

# run_ctest PRESET: every test program; each Criterion case counts. Kernels that the release run has compiled are there for the
# debug run.
run_ctest() {
  local preset=$1 log=build/$1/test.log
  BERTH_REQUIRE_DRIVERS=${BERTH_REQUIRE_DRIVERS-cpu,opencl,vulkan} ASAN_OPTIONS=abort_on_error=1:detect_leaks=1 \
    LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    BERTH_CACHE_DIR=$PWD/build/release/kernel-cache \
    ctest --test-dir "build/$preset" --parallel "$(nproc)" --output-on-failure --timeout 2700 -V >"$log" 2>&1
  local status=$?
  local cases
  cases=$(grep -oE 'Synthesis: .*' "$log" | sed -E 's/\x1b\[[0-9;]*m//g')
  local p f s
  p=$(echo "$cases" | grep -oE 'Passing: [0-9]+' | awk '{n += $2} END {print n + 0}')
  f=$(echo "$cases" | grep -oE '(Failing|Crashing): [0-9]+' | awk '{n += $2} END {print n + 0}')
  s=$(grep -ohE '^[0-9]+: BERTH-SKIPPED [0-9]+' "$log" | awk '{n += $3} END {print n + 0}')
  passed=$((passed + p))
  failed=$((failed + f))
  skipped=$((skipped + s))
  # Programs that are not Criterion's (fuzz replays, stress, scripts) count one each.
  while read -r name result; do
    case "$name" in fuzz_* | stress_* | script_*) note "$preset: $name" "$([ "$result" = Passed ] && echo 0 || echo 1)" ;; esac
  done < <(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) \.+ *\**(Passed|Failed|Exception|Timeout|Not).*/\1 \2/p' "$log")
  if [ $status -ne 0 ]; then
    grep -E '^ *[0-9]+\/[0-9]+ Test.*(Failed|Exception|Timeout|Not Run)' "$log" >&2
    grep -E '\[(FAIL|\x1b\[0;31mFAIL)|ERROR: |runtime error' "$log" | head -40 >&2
    while read -r number name; do
      details+=("$preset: $name: $(grep -E "^$number: .*(FAIL|ERROR|rror: |SUMMARY|runtime error|^$number:  +#[0-9] )" "$log" | head -12 | cut -c1-200)")
    done < <(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#([0-9]+): ([^ ]+) \.+ *\**(Failed|Exception|Timeout|Not).*/\1 \2/p' "$log")
    [ "$f" -gt 0 ] || { failed=$((failed + 1)); failures+=("ctest $preset"); }
  fi
  grep -E '^[0-9]+: (BERTH-TABLE|  driver)' "$log" | sed -E 's/^[0-9]+: //' || true
  # The matrix of drivers and suites that the conformance program prints.
  sed -E 's/^[0-9]+: ?//' "$log" | awk '/^ +null +cpu /{on = 1} on{print} /^buffer /{on = 0}' || true
  echo "$preset: $p passed, $f failed, $s skipped (log: $log)"
}

scripts/build.sh release || { echo "0 passed, 1 failed"; exit 1; }
tools/lint/lint.sh
note "lint" $?
run_ctest release
if [ $fast -eq 0 ]; then
  if scripts/build.sh debug; then run_ctest debug; else note "build debug" 1; fi
  # Criterion does not start under the thread sanitizer: the programs that stress threads do.
  if scripts/build.sh tsan stress_executor stress_requests stress_devices; then
    for program in stress_executor stress_requests stress_devices; do
      TSAN_OPTIONS=halt_on_error=1 "build/tsan/tests/$program"
      note "tsan: $program" $?
    done
  else
    note "build tsan" 1
  fi
fi
for detail in ${details[@]+"${details[@]}"}; do echo "$detail" >&2; done
for failure in ${failures[@]+"${failures[@]}"}; do echo "failed: $failure" >&2; done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
