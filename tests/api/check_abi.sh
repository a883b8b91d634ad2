#!/usr/bin/env bash
# The types of the public interface are those of tests/api/berth.abi, by abidiff (Debian: abigail-tools). Functions may be added.
# Usage: check_abi.sh [--update]
#   --update   writes that file anew, where structures only grow at the end and enumerations by more numbers (docs/embedding.md,
#              What is public); for more, which needs a new version of Berth, remove the file first
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v abidiff >/dev/null || { echo "BERTH-SKIPPED 1: abidiff is not here (Debian package abigail-tools)"; exit 0; }
[ "$(uname -m)" = x86_64 ] || { echo "BERTH-SKIPPED 1: tests/api/berth.abi is of x86_64"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kept=tests/api/berth.abi

# A variable for each public function, of the type of a pointer to it: what a library says of types that only the headers have.
{
  echo '#include <berth/berth.h>'
  while read -r name; do echo "extern __typeof__(&$name) const type_of_$name; __typeof__(&$name) const type_of_$name = 0;"; done
} <tests/api/symbols.txt >"$work/types.c"
cc -g -ffile-prefix-map="$work"=. -shared -fPIC -std=gnu11 -Iinclude "$work/types.c" -o "$work/libtypes.so"

if [ "${1:-}" = --update ]; then
  abidw --no-corpus-path --no-comp-dir-path --no-show-locs --type-id-style hash --out-file "$work/new.abi" "$work/libtypes.so"
  if [ -e $kept ] && { abidiff $kept "$work/libtypes.so" || true; } | grep "was changed to"; then exit 1; fi  # a function's own type
  [ ! -e $kept ] || python3 - $kept "$work/new.abi" <<'PYTHON'
import sys
import xml.etree.ElementTree as tree

def facts(path):
    """{(structure, member): offset, (enumeration, name): number}"""
    found = {}
    for kind in tree.parse(path).iter():
        for child in kind:
            if kind.tag == 'class-decl' and child.tag == 'data-member':
                found[kind.get('name'), child.find('var-decl').get('name')] = child.get('layout-offset-in-bits')
            if kind.tag == 'enum-decl' and child.tag == 'enumerator':
                found[kind.get('name'), child.get('name')] = child.get('value')
    return found

new = facts(sys.argv[2])
wrong = [' '.join(key) for key, value in facts(sys.argv[1]).items() if new.get(key) != value]
sys.exit('moved, changed or gone: ' + ', '.join(wrong) if wrong else 0)
PYTHON
  cp "$work/new.abi" $kept
  exit
fi
abidiff --no-added-syms $kept "$work/libtypes.so" ||
  { echo "the public interface has changed: where it has only grown, tests/api/check_abi.sh --update"; exit 1; }
echo "$(wc -l <tests/api/symbols.txt) public functions and their types are as they were"
