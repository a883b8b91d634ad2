#!/usr/bin/env bash
# Manual pages and completions have exactly the commands and options that --help shows, and their readers take them.
# Usage: check_words.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
berth=$build/berth
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }

tools/write_share.sh "$berth" "$work/share"
source "$work/share/berth.bash"
# completed WORD...: what bash offers for the last word.
completed() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _berth
  printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | sort
}

commands=$("$berth" --help | sed -nE 's/^  ([a-z]+) +.*/\1/p' | sort)
[ "$(wc -l <<<"$commands")" -gt 15 ] || fail "--help shows few commands: $commands"
diff <(echo "$commands") <(completed berth '' | grep -vE '^(help|--.*)$') || fail "--help (<) and bash (>) have other commands"
[ "$(completed berth ben)" = bench ] || fail "'berth ben' is not completed to bench"
for command in $commands; do
  "$berth" "$command" --help | grep -oE '^  (    |-., )--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort >"$work/help"
  [ -s "$work/help" ] || fail "$command: --help shows no options"
  sed -nE 's/^(\\fB\\-.\\fR, )?\\fB\\-\\-([^=]*)\\fR.*/--\2/p' "$work/share/man1/berth-$command.1" | sed 's/\\-/-/g; s/\\fR.*//' |
    sort | diff "$work/help" - || fail "$command: --help (<) and the manual page (>) have other options"
  [ "$command" = vta ] && continue # a program of its own: only its name is completed
  completed berth "$command" -- | diff "$work/help" - || fail "$command: --help (<) and bash (>) have other options"
  sed -nE "/^    $command\)$/,/;;/s/^ +'\*(--[a-z-]+).*/\1/p" "$work/share/_berth" | sort | diff "$work/help" - ||
    fail "$command: --help (<) and zsh (>) have other options"
done
[ "$(completed berth run --tr)" = --trace ] || fail "'berth run --tr' is not completed to --trace"
# Values of options, each of which the command takes: of another one it says which these are.
values() { completed berth "$1" "$2" = '' | sed '/^$/d' | tr '\n' ' '; }
[ "$(values plan --format)" = "dot json svg text " ] || fail "berth plan --format= is completed to $(values plan --format)"
[ "$(values run --format)" = "json text " ] || fail "berth run --format= is completed to $(values run --format)"
[ "$(completed berth run m.onnx --format j)" = json ] || fail "'--format j' is not completed to json"
[ "$(completed berth target show cpu -f s)" = svg ] || fail "'-f s' is not completed to svg"
[ "$(completed berth plan --strategy = aut)" = auto ] || fail "'--strategy=aut' is not completed to auto"
[ -z "$(values run --input)" ] || fail "--input takes files, not $(values run --input)"
listed=0
for command in $commands; do
  [ "$command" = vta ] && continue
  for option in $(completed berth "$command" --); do
    offered=$(values "$command" "$option")
    [ -n "$offered" ] || continue
    listed=$((listed + 1))
    told=$({ "$berth" "$command" "$option=?" x 2>&1 || true; } | sed -nE "s/.*$option takes (.*), not \"\?\".*/\1/p" | sed 's/ or /, /; s/, /\n/g' | sort | tr '\n' ' ')
    [ "$told" = "$offered" ] || fail "berth $command $option is completed to $offered, and takes $told"
    told=$(sed -nE "/^    $command\)$/,/;;/s/^ +'\*$option=.*:\((.*)\).*/\1/p" "$work/share/_berth" | tr ' ' '\n' | sort | tr '\n' ' ')
    [ "$told" = "$offered" ] || fail "berth $command $option is completed to $offered in bash, to $told in zsh"
  done
done
[ "$listed" -gt 40 ] || fail "only $listed options have values"
[ -z "$(completed berth run mod)" ] || fail "a model's name is completed to an option"
for page in "$work"/share/man1/*.1; do
  warnings=$(groff -man -ww -Tutf8 "$page" 2>&1 >"$work/page")
  [ -z "$warnings" ] || fail "$page: $warnings"
  [ "$(wc -l <"$work/page")" -gt 10 ] || fail "$page is nearly empty"
done
zsh -n "$work/share/_berth"
# zsh itself, with an _arguments that shows what it is told.
zsh -fc 'compdef() { : }; _describe() { print -l ${(P)2} }; words=(berth be); CURRENT=2; source '"$work/share/_berth" | grep '^bench:' >/dev/null ||
  fail "zsh does not complete commands"
zsh -fc '_arguments() { print -l "$@" }; words=(berth run --); CURRENT=3; source '"$work/share/_berth" | grep '^\*--trace=\[' >/dev/null ||
  fail "zsh does not complete options"
echo "$(wc -l <<<"$commands") commands with manual pages and completions"
