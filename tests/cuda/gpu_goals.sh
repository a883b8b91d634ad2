#!/usr/bin/env bash
# scripts/gpu_goals.sh on the emulated device: every kind of goal is measured and said, with cuBLAS and without it.
# Usage: gpu_goals.sh BUILD_FOLDER EMULATION_FOLDER
set -uo pipefail
cd "$(dirname "$0")/../.."
build=$1 emulation=$(realpath "$2") failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED $*"
  failed=1
}

mkdir "$work/goals" "$work/plain"
cat >"$work/goals/product.txt" <<'END'
module "product" graph @main(%x: f16[32,16], %w: f16[16,48]) { %y = matmul(%x, %w): f16[32,48] return %y }
END
cat >"$work/goals/copy.txt" <<'END'
module "copy" graph @main(%x: f16[64]) { %y = relu(%x): f16[64] return %y }
END
cat >"$work/goals/steps.txt" <<'END'
module "steps" graph @main(%x: f32[1,32]) { %a = softmax(%x): f32[1,32] %b = softmax(%a): f32[1,32] return %b }
END
cat >"$work/goals/goals" <<'END'
# comment
copy bandwidth 256

product product 32 48 16 f16 85
copy bytes 256 80
steps launches 2 2.5
END

# expect TEXT: a line of the output has it.
expect() { grep -qE "$1" "$work/out" || fail "no line with '$1' in: $(cat "$work/out")"; }

LD_LIBRARY_PATH=$emulation BERTH_CACHE_DIR=$work/cache scripts/gpu_goals.sh "$build" "$work/report" "$work/goals" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
expect '^goal    copy: [0-9.]+ ms on the device, [0-9.]+ GB/s$'
expect '^goal    product: [0-9.]+ ms on the device, [0-9.]+ TFLOP/s, cuBLAS [0-9.]+ ms: [0-9.]+ % of its speed, 85 % wanted: (NOT )?reached$'
expect '^goal    copy: .* % of the bandwidth, 80 % wanted: (NOT )?reached$'
expect '^goal    steps: ([0-9.]+ us for each of 2 steps beside its kernel, [0-9.]+ us with it, 2.5 us wanted: (NOT )?reached|at most [0-9.]+ us for each of 2 steps, its kernel with it, 2.5 us wanted: (reached|not shown))$'
[ "$(grep -c '^goal ' "$work/out")" -eq 4 ] || fail "other lines: $(cat "$work/out")"

# Without libcublas the product is measured all the same. Files that are no libraries stand before an installed one.
cp "$emulation"/libcuda.so.1 "$emulation"/libnvrtc.so.* "$work/plain/"
for version in .13 .12 .11 ""; do echo "no library" >"$work/plain/libcublas.so$version"; done
echo 'product product 32 48 16 f16 85' >"$work/goals/goals"
LD_LIBRARY_PATH=$work/plain BERTH_CACHE_DIR=$work/cache scripts/gpu_goals.sh "$build" "$work/report" "$work/goals" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
expect '^goal    product: [0-9.]+ ms on the device, [0-9.]+ TFLOP/s, not compared with cuBLAS: cublas_products: there is no libcublas$'

# What cannot be measured is a failure, and the others are measured.
printf 'missing product 32 48 16 f16 85\ncopy bandwidth 256\n' >"$work/goals/goals"
LD_LIBRARY_PATH=$work/plain BERTH_CACHE_DIR=$work/cache scripts/gpu_goals.sh "$build" "$work/report" "$work/goals" >"$work/out" 2>&1 && fail "a goal without a module passes"
expect '^FAILED  goal missing: exit status 1$'
expect '^goal    copy: '

# Nor is a share of a bandwidth that was not measured one that was reached.
printf 'missing bandwidth 256\ncopy bytes 256 80\n' >"$work/goals/goals"
LD_LIBRARY_PATH=$work/plain BERTH_CACHE_DIR=$work/cache scripts/gpu_goals.sh "$build" "$work/report" "$work/goals" >"$work/out" 2>&1 && fail "a share of nothing passes"
expect '^FAILED  goal copy: the bandwidth that it is a share of was not measured$'
grep -q 'reached' "$work/out" && fail "$(cat "$work/out")"

# Times of kernels by their events that are longer than a run with graphs show no goal of launches.
mkdir "$work/other"
cat >"$work/other/berth" <<'END'
#!/usr/bin/env bash
[[ " $* " == *" --profile "* ]] || { echo "latency: median 2.000 ms, p90"; exit 0; }
echo "profile: mean of 20 runs"
echo "2.5 50% 0 - 0 0 cuda:0 f32[1] a"
END
chmod +x "$work/other/berth"
printf 'steps launches 200 2.5\nsteps launches 100 25\n' >"$work/goals/goals"
scripts/gpu_goals.sh "$work/other" "$work/report" "$work/goals" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
expect '^goal    steps: at most 10.00 us for each of 200 steps, its kernel with it, 2.5 us wanted: not shown$'
expect '^goal    steps: at most 20.00 us for each of 100 steps, its kernel with it, 25 us wanted: reached$'

# Launches are those of graphs: what a step costs is not measured where steps are handed over one by one.
echo 'steps launches 2 2.5' >"$work/goals/goals"
LD_LIBRARY_PATH=$work/plain BERTH_CACHE_DIR=$work/cache BERTH_EMULATION_FAIL=cuGraphLaunch:0:2 scripts/gpu_goals.sh "$build" "$work/report" "$work/goals" \
  >"$work/out" 2>&1 && fail "launches are measured without graphs"
expect '^FAILED  goal steps: exit status 1$'
grep -q 'launch prepared commands' "$work/report" || fail "another error: $(tail -3 "$work/report")"
exit $failed
