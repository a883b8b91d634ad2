#!/usr/bin/env bash
# House rules that a compiler does not check: layers, sizes, getenv, formatting. Prints what breaks them; exit status 1 then.
set -uo pipefail
cd "$(dirname "$0")/../.."
status=0
say() { echo "lint: $*" >&2; status=1; }

# Layers: which folders a folder's files may include (docs/overview.md).
declare -A allowed=(
  [base]="base"
  [target]="base target"
  [memory]="base target memory"
  [image]="base image"
  [ir]="base target image ir"
  [artifact]="base target artifact"
  [planner]="base target memory ir planner"
  [compiler]="base target memory ir planner artifact compiler"
  [devices]="base target memory artifact devices"
  [executor]="base target memory artifact devices executor"
  [toolkit]="base target memory ir planner artifact compiler devices executor toolkit"
  [api/run]="base target memory artifact devices executor api"
  [api/compile]="base target memory ir planner artifact compiler devices executor toolkit api"
  [drivers]="base target memory artifact devices drivers"
  [tools]="base image tools"
)
for folder in "${!allowed[@]}"; do
  [ -d "$folder" ] || continue
  while IFS=: read -r file line include; do
    top=$(sed -E 's/.*"([^"\/]+)\/.*/\1/' <<<"$include")
    case " ${allowed[$folder]} " in
    *" $top "*) ;;
    *) say "$file:$line: $folder may not include $top/ (allowed: ${allowed[$folder]})" ;;
    esac
  done < <(grep -rnE '^#include "[^"]+/' "$folder" --include='*.c' --include='*.h' | grep -vE '^drivers/[^/]+/(command|compiler)/')
done
# The command of a driver is one of tools/, built apart.
while IFS=: read -r file line include; do
  top=$(sed -E 's/.*"([^"\/]+)\/.*/\1/' <<<"$include")
  case " base target memory ir planner artifact compiler devices executor toolkit tools drivers " in
  *" $top "*) ;;
  *) say "$file:$line: a driver's command may not include $top/" ;;
  esac
done < <(grep -rnE '^#include "[^"]+/' drivers/*/command --include='*.c' --include='*.h' 2>/dev/null)
# The compiler's side of a kind of device is a plug-in, built apart.
while IFS=: read -r file line include; do
  top=$(sed -E 's/.*"([^"\/]+)\/.*/\1/' <<<"$include")
  case " ${allowed[compiler]} drivers " in
  *" $top "*) ;;
  *) say "$file:$line: a driver's plug-in may not include $top/" ;;
  esac
done < <(grep -rnE '^#include "[^"]+/' drivers/*/compiler --include='*.c' --include='*.h' 2>/dev/null)
while IFS=: read -r file line include; do
  case "$include" in
  *'"base/'* | *'"planner/solve/'*) ;;
  *) say "$file:$line: planner/solve may include only base/" ;;
  esac
done < <(grep -rnE '^#include "' planner/solve --include='*.c' --include='*.h' 2>/dev/null)

# Under pipefail a writer that grep -q leaves early fails by SIGPIPE, sometimes: grep reads to the end.
while IFS=: read -r file line _; do
  say "$file:$line: '| grep -q' under pipefail fails by chance: write '| grep ... >/dev/null'"
done < <(git grep -nE '[|] *grep -[a-zA-Z]*q' -- '*.sh' .ci ':!tools/lint')

# The command uses the public interface.
python3 tools/lint/public_commands.py || status=1

python3 tools/lint/include_circles.py || status=1

# getenv only where a command line is.
while read -r hit; do say "$hit: getenv outside tools/ and tests/"; done \
  < <(grep -rnE '\bgetenv\(' base target memory ir artifact planner compiler devices executor toolkit api drivers --include='*.c' | cut -d: -f1,2)

# Messages of the libraries name things, not options of the command, which words what would help (berth_status_remedy).
while read -r hit; do say "$hit: an option of the command in a text of the library"; done \
  < <(grep -rnE '"([^"]*[ `(])?--[a-z][a-z-]+' base target memory ir artifact planner compiler devices executor toolkit api --include='*.c' |
    grep -vE '%s --version|lstopo|codegen/|add_argument|^devices/cuda|:[0-9]+: *//|: *char .*// ' |
    # Here the option is the place that an error is at, as a field's path is in JSON.
    grep -vE '^(target/(parse|memory)|planner/pins)\.c:' | cut -d: -f1,2)

while read -r hit; do say "$hit: the command in a text of the library: say the thing, or give a berth_remedy"; done \
  < <(grep -rnE '"[^"]*`berth[ -]' base target memory ir artifact planner compiler devices executor toolkit api drivers --include='*.[ch]' --include='*.def' |
    grep -vE '^drivers/[^/]+/command/|:[0-9]+: *//' | cut -d: -f1,2)

# Outside of target/ and the drivers nobody asks for a kind of device by its name: what kinds are like is in target/kinds.def
# (berth_device_kind_is_host, ...), and what serves one is in a table (.kind = "..."). Exceptions, each with its reason:
#   compiler/external.c             the languages of external functions, a table from language to kind
#   toolkit/machine_picture.c       a table of colours
while read -r hit; do say "$hit: asks for a kind of device by its name"; done \
  < <(grep -rnE '\bBERTH_DEVICE_(CPU|OPENCL|VULKAN|CUDA|VTA|NPU)\b|str(n?)cmp\([^;]*"(cpu|opencl|vulkan|cuda|vta|npu|null)"' \
        base memory ir artifact planner compiler executor toolkit api tools --include='*.c' --include='*.h' |
    grep -vE '^(compiler/external|toolkit/machine_picture)\.c:|[ {]\.kind = BERTH_DEVICE_[A-Z]+,' | cut -d: -f1,2)

# Sizes.
while read -r count file; do
  [ "$file" = total ] && continue
  [ "$count" -gt 800 ] && say "$file has $count lines; 600 is the aim, 800 the limit"
done < <(git ls-files '*.c' '*.h' | xargs wc -l)

# What is not text is test data or the example's; an archive or a package that a download left has no place here.
while read -r file; do
  case "$file" in
  examples/digits/* | tests/fuzz/corpus/* | tests/*.onnx | tests/*.pb) ;;
  *) say "$file: a file that is not text; keep it out of the tree" ;;
  esac
done < <(git ls-files --eol | awk -F'\t' '/^i\/-text/ { print $2 }')

# Formatting.
if command -v clang-format >/dev/null; then
  unformatted=$(git ls-files '*.c' '*.h' | xargs clang-format --dry-run 2>&1 | grep -oE '^[^: ]+\.[ch]:[0-9]+' | cut -d: -f1 | sort -u)
  for file in $unformatted; do say "$file: run clang-format -i"; done
fi
exit $status
