#!/usr/bin/env bash
# The public interface: every header by itself in C99 and in C++, and what the shared libraries export: of the public version
# exactly the functions that the headers declare, and nothing else under another name than berth_*.
# Usage: check_interface.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }

for header in include/berth/*.h; do
  echo "#include <berth/$(basename "$header")>" >"$work/one.c"
  cp "$work/one.c" "$work/one.cc"
  cc -std=c99 -pedantic-errors -Wall -Wextra -Wstrict-prototypes -Werror -Iinclude -fsyntax-only "$work/one.c" || fail "$header: not C99"
  c++ -std=c++11 -pedantic-errors -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/one.cc" || fail "$header: not C++"
done

# declared HEADER...: names of the functions that headers declare, as the preprocessor leaves them.
declared() {
  for header in "$@"; do
    echo "#include <berth/$header.h>" | cc -std=c99 -Iinclude -E -P - | tr '\n' ' ' | grep -oE 'visibility\("default"\)\)\)[^;]*;' |
      grep -oE '\bberth_[a-z0-9_]+ ?\(' | tr -d ' ('
  done | sort -u
}
# exported LIBRARY PATTERN: names in versions that match.
exported() { nm -D --with-symbol-versions --defined-only "$build/$1" | awk '{print $3}' | grep -E "$2" | sed 's/@.*//' | sort -u; }

run_side="version status tensor device program session request dynamic"  # all others are libberth-compiler's
declared $run_side >"$work/run_side"
declared $(cd include/berth && ls ./*.h | sed -E 's|^\./(.*)\.h$|\1|' | grep -vx berth) | comm -23 - "$work/run_side" >"$work/compiler"
[ "$(wc -l <"$work/run_side")" -gt 40 ] || fail "declarations were not found"
for pair in libberth.so:run_side libberth-compiler.so:compiler; do
  library=${pair%%:*}
  exported "$library" '@@BERTH_0\.1$' >"$work/exported"
  diff -u "$work/${pair##*:}" "$work/exported" || fail "$library: what headers declare (-) is not what it exports (+)"
  others=$(nm -D --defined-only "$build/$library" | awk '$2 != "A" {print $3}' | grep -vE '^berth_' || true)
  [ -z "$others" ] || fail "$library exports $others"
  readelf -d "$build/$library" | grep "SONAME.*\[$library\.0\.1\]" >/dev/null || fail "$library: no soname with the version"
done
readelf -d "$build/libberth.so" | grep 'NEEDED.*berth-compiler' >/dev/null && fail "libberth needs the compiler"

# What libberth-compiler takes of libberth under the private version is what api/compiler_names.map lists: no name that nobody
# takes any more. And no public function of libberth is there twice, for programs to take from the wrong library.
nm -D --undefined-only --with-symbol-versions "$build/libberth-compiler.so" | awk '{print $2}' | grep '@BERTH_PRIVATE' | sed 's/@.*//' | sort -u >"$work/taken"
grep -oE '^berth_[a-z0-9_]+' api/compiler_names.map | sort -u | diff -u - "$work/taken" ||
  fail "api/compiler_names.map (-) is not what libberth-compiler takes of libberth (+)"
twice=$(comm -12 <(exported libberth-compiler.so . ) "$work/run_side")
[ -z "$twice" ] || fail "public in libberth, and exported by libberth-compiler: $twice"

# Functions that were public once stay: tests/api/symbols.txt only grows (docs/embedding.md).
sort -u "$work/run_side" "$work/compiler" >"$work/all"
gone=$(comm -23 <(sort -u tests/api/symbols.txt) "$work/all")
[ -z "$gone" ] || fail "no longer public: $gone"
unlisted=$(comm -13 <(sort -u tests/api/symbols.txt) "$work/all")
[ -z "$unlisted" ] || fail "public, but not yet in tests/api/symbols.txt: $unlisted"
echo "$(wc -l <"$work/all") public functions"
