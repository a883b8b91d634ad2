# What gpu_check.sh and gpu_goals.sh share, sourced with $report set: lines for the reader, and commands whose output goes into
# the report and, alone, into $output.
output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT

say() { printf '%s\n' "$*" | tee -a "$report"; }

# logged NAME COMMAND...: the command's exit status.
logged() {
  local name=$1 status=0
  shift
  { echo; echo "== $name: $*"; } >>"$report"
  timeout 1800 "$@" >"$output" 2>&1 || status=$?
  cat "$output" >>"$report"
  return $status
}
