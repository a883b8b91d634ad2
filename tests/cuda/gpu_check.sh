#!/usr/bin/env bash
# scripts/gpu_check.sh on the emulated device: every model with data is checked and timed, what is printed of one is its own, and
# what was not done is said.
# Usage: gpu_check.sh BUILD_FOLDER EMULATION_FOLDER
set -uo pipefail
cd "$(dirname "$0")/../.."
build=$1 emulation=$(realpath "$2") failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED $*"
  failed=1
}

scripts/gpu_check.sh --no-such-option >/dev/null
[ $? -eq 2 ] || fail "a wrong option has another exit status than 2"
scripts/gpu_check.sh --help | grep '^Exit status' >/dev/null || fail "--help does not end with the exit status"

mkdir -p "$work/models/a_family" "$work/models/digits/test_data_set_0" "$work/models/z_broken/test_data_set_0" "$work/goals" "$work/nodes"
cp -r tests/models/domains/bias_gelu "$work/models/a_family/one"
cp -r tests/models/domains/bias_gelu "$work/models/a_family/two"
# A dimension that the model leaves open; what is expected comes from the processor.
digits=$work/models/digits
cp examples/digits/digits.onnx "$digits/model.onnx"
cat >"$work/image.txt" <<'END2'
module "image" graph @main(%x: f32[3,1,8,8]) { %y = relu(%x): f32[3,1,8,8] return %y }
END2
"$build/berth" run "$work/image.txt" --target cpu --output "y=$digits/test_data_set_0/input_0.pb" >"$work/out" 2>&1 &&
  "$build/berth" run "$digits/model.onnx" --target cpu --input "$digits/test_data_set_0/input_0.pb" \
    --output "probabilities=$digits/test_data_set_0/output_0.pb" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
echo "no model" >"$work/models/z_broken/model.onnx"
echo 'module "copy" graph @main(%x: f16[64]) { %y = relu(%x): f16[64] return %y }' >"$work/goals/copy.txt"
echo 'copy bandwidth 256' >"$work/goals/goals"

# emulated COMMAND...
emulated() { BERTH_CACHE_DIR=${BERTH_CACHE_DIR:-$work/cache} tests/cuda/emulation.sh "$emulation" "$@"; }

emulated scripts/gpu_check.sh --quick --models "$work/models" --nodes "$work/nodes" --goals "$work/goals" "$build" "$work/report" \
  >"$work/out" 2>"$work/errors"
[ $? -eq 1 ] || fail "a model that is none passes"
[ ! -s "$work/errors" ] || fail "$(cat "$work/errors")"

# expect REGEX: a line of the output is that.
expect() { grep -qxE "$1" "$work/out" || fail "no line '$1' in: $(cat "$work/out")"; }
expect 'THIS IS THE EMULATION OF THE TESTS, NOT A GPU'
expect "NVRTC: $emulation/libnvrtc.so.*"
for name in a_family/one a_family/two digits; do
  expect "ok      verify $name \([0-9]+ s\)"
  expect "ok      time $name \([0-9]+ s\)"
  expect "        $name: latency: median [0-9.]+ ms, .* over 20 runs"
  expect "ok      profile of $name \([0-9]+ s\)"
  expect "ok      measure cublas,cudnn for $name \([0-9]+ s\)"
  expect "        $name with cublas,cudnn: latency: median [0-9.]+ ms, .* over 20 runs"
done
expect 'ok      verify digits, convolutions and products on the GPU \([0-9]+ s\)'
expect 'FAILED  verify z_broken: exit status 1 .*'
expect 'FAILED  time z_broken: exit status 1 .*'
expect 'skipped operators: --quick'
expect "skipped node models: none in $work/nodes .*"
expect 'goal    copy: .*'
[ "$(grep -c '^FAILED' "$work/out")" -eq 2 ] || fail "others fail: $(cat "$work/out")"
[ "$(grep -c 'latency' "$work/out")" -eq 6 ] || fail "latencies of others: $(cat "$work/out")"

expect 'skipped conformance, two devices: --quick'

# Without models, goals and test programs: each is said, and no goals at all is a failure.
mkdir "$work/bare" "$work/none"
ln -s "$(realpath "$build/berth")" "$work/bare/berth"
emulated scripts/gpu_check.sh --models "$work/none" --nodes "$work/none" --goals "$work/none" "$work/bare" "$work/report" >"$work/out" 2>"$work/errors"
[ $? -eq 1 ] || fail "no goals pass"
[ ! -s "$work/errors" ] || fail "$(cat "$work/errors")"
for name in conformance operators "node models"; do expect "skipped $name: the build has no tests"; done
expect "skipped real models: none with data sets beside it in $work/none .*"
expect "FAILED  goals: there is no list of them at $work/none/goals"
[ "$(grep -c '^FAILED' "$work/out")" -eq 1 ] || fail "others fail: $(cat "$work/out")"

# The lists of known node models are of this device, too.
if [ -d /usr/share/libonnx-testdata/data/node ]; then
  for only in test_bernoulli test_adam; do
    emulated "$build/tests/node_models" --device cuda:0 --only "$only*" --known tests/models/unsupported.txt \
      --known tests/models/expected_failures.txt >"$work/out" 2>&1 || fail "$only: $(cat "$work/out")"
  done
else
  echo "BERTH-SKIPPED 1: no node models (Debian package libonnx-testdata)"
fi
exit $failed
