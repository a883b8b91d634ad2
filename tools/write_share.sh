#!/bin/sh
# Writes manual pages and completions as the command prints them. Usage: write_share.sh BERTH FOLDER
set -eu
mkdir -p "$2/man1"
"$1" completion bash >"$2/berth.bash"
"$1" completion zsh >"$2/_berth"
"$1" manual >"$2/man1/berth.1"
"$1" vta '--describe=man:replay, show and time programs of a VTA' >"$2/man1/berth-vta.1" # a program of its own
for name in $("$1" --help | sed -nE 's/^  ([a-z]+) +[^( ].*/\1/p'); do
  "$1" manual "$name" >"$2/man1/berth-$name.1"
done
touch "$2/stamp"
