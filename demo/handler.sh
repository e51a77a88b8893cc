#!/usr/bin/env bash
# Does one task of the demo: a package's checks, or the report over all of them.
set -euo pipefail
task=$(cat) # the task's JSON; its text is data and is only ever quoted
type=$(sed -n 's/.*"task_type": *"\([^"]*\)".*/\1/p' <<<"$task")

if [[ $type == report ]]; then
  {
    echo "# Packages of this repository"
    echo
    echo "| package | vet | format | tests | lines |"
    echo "|---|---|---|---|---|"
    cat "$BEEYARD_RUN"/artifacts/*.md
  } >"$BEEYARD_ARTIFACT_PATH"
  exit 0
fi

dir=$(sed -n 's/.*"dir": *"\([^"]*\)".*/\1/p' <<<"$task")
[[ -d $dir ]] || { echo "no folder $dir" >&2; exit 1; }
vet=ok
go vet "$dir" || vet=findings
unformatted=$(gofmt -l "$dir"/*.go | wc -l)
tests=$(cat "$dir"/*_test.go 2>/dev/null | grep -cE '^func (Test|Fuzz|Benchmark)' || true)
lines=$(cat "$dir"/*.go | wc -l)
format=ok
((unformatted == 0)) || format="$unformatted files"
echo "| $dir | $vet | $format | $tests | $lines |" >"$BEEYARD_ARTIFACT_PATH"
echo "checked $dir"
