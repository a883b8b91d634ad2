#!/usr/bin/env bash
# Models for cuda: the kernels of each compile with nvcc for sm_80 and sm_90 where there is one (model_kernels.py: those of ../shared/models),
# and small ones give in the emulation what comes with them. Usage: models.sh BERTH EMULATION_FOLDER. Counts what is not there as skipped.
set -uo pipefail
cd "$(dirname "$0")/../.."
berth=$1 emulation=$2 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)

fail() {
  echo "FAILED $*"
  failed=1
}

# compile NAME MODEL OPTION...; for target $target, by nvcc for $architectures
target=sm_80 architectures="sm_80 sm_90"
compile() {
  local name=$1 log=$work/log
  shift
  "$berth" build "$@" --target "cuda -arch=$target" -o "$work/$name.berth" >"$log" 2>&1 || { fail "build $name: $(tail -1 "$log")"; return; }
  "$berth" inspect "$work/$name.berth" --extract="$work/$name" >/dev/null || { fail "inspect $name"; return; }
  for text in "$work/$name"/image/*.cu; do
    [ -x "$nvcc" ] || { skipped=$((skipped + 1)); continue; }
    for arch in $architectures; do
      "$nvcc" -arch=$arch -std=c++17 -w -cubin -Xptxas -v -o "$work/cubin" "$text" >"$log" 2>&1 || fail "nvcc $arch $name: $(head -5 "$log")"
      # 64 of a thread leave room for 1024 threads on a multiprocessor.
      registers=$(grep -oE 'Used [0-9]+ registers' "$log" | cut -d' ' -f2 | sort -n | tail -1)
      [ "$name" != attention ] || [ "${registers:-0}" -le 64 ] || fail "nvcc $arch $name: $registers registers"
    done
  done
}

cat >"$work/attention.txt" <<'END'
module "attention of a row and of rows, in one kernel each"
graph @main(%q: f16[1,8,1,64], %r: f32[1,2,50,64], %k: f16[1,8,64,700], %v: f16[1,8,700,64], %l: f32[1,2,64,80],
    %w: f32[1,2,80,64]) {
  %s = matmul(%q, %k): f16[1,8,1,700] %p = softmax(%s): f16[1,8,1,700] %y = matmul(%p, %v): f16[1,8,1,64]
  %t = matmul(%r, %l): f32[1,2,50,80] %o = softmax(%t): f32[1,2,50,80] %z = matmul(%o, %w): f32[1,2,50,64]
  return %y, %z
}
END
compile attention "$work/attention.txt"
cat >"$work/warpgroups.txt" <<'END'
module "products of four warps, with what follows them"
graph @main(%x: f16[200,136], %w: f16[136,300], %b: f16[300], %r: f16[200,300], %m: f16[1,64,20,20], %v: f16[96,64,1,1], %i: u8[100,160], %j: i8[160,72]) {
  %p = matmul(%x, %w): f16[200,300] %q = add(%p, %b): f16[200,300] %g = sigmoid(%q): f16[200,300] %y = add(%g, %r): f16[200,300]
  %c = conv(%m, %v, _): f16[1,96,20,20] %z = relu(%c): f16[1,96,20,20]
  %k = matmul_integer(%i, %j): i32[100,72]
  return %y, %z, %k
}
END
target=sm_90a architectures=sm_90a
compile warpgroups "$work/warpgroups.txt"
for unit in f16 u8_i8; do grep -q "berth_unit_wgmma_${unit}_n" "$work"/warpgroups/image/*.cu || fail "warpgroups: no wgmma of $unit"; done
target=sm_80 architectures="sm_80 sm_90"
compile digits examples/digits/digits.onnx --dim batch=16
python3 tests/cuda/model_kernels.py "$berth" "$emulation/../cuda_model_kernels" --nvcc "$nvcc" --emulation "$emulation" >"$work/log" 2>&1 || fail "kernels of models:
$(tail -20 "$work/log")"
head -3 "$work/log"
grep -q BERTH-SKIPPED "$work/log" && skipped=$((skipped + 1))

# Against the outputs that come with the models.
for name in mnist light_squeezenet; do
  folder=../shared/models/$name
  [ -d "$folder/test_data_set_0" ] || { skipped=$((skipped + 1)); continue; }
  LD_LIBRARY_PATH=$emulation "$berth" verify "$folder/model.onnx" --data "$folder/test_data_set_0" --target cuda \
    --require cuda:0 >"$work/log" 2>&1 || fail "verify $name on cuda: $(tail -1 "$work/log")"
done
[ $skipped -eq 0 ] || echo "BERTH-SKIPPED $skipped: models of ../shared/models or nvcc are not there"
exit $failed
