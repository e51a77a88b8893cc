#!/usr/bin/env bash
# The whole suite. BEEYARD_NIGHTLY=1 runs the long versions.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -trimpath"

echo "== build and vet"
CGO_ENABLED=0 go build ./...
go vet ./...
unformatted=$(gofmt -l $(git ls-files '*.go'))
if [[ -n "$unformatted" ]]; then echo "not gofmt-clean: $unformatted" >&2; exit 1; fi

timeout=15m
if [[ "${BEEYARD_NIGHTLY:-}" == 1 ]]; then timeout=5h; fi

# The race detector needs a C compiler; binaries that tests spawn are built
# without it, since a program under it is ten times slower to start.
race=()
if command -v "${CC:-gcc}" >/dev/null; then
  race=(-race)
  export CGO_ENABLED=1
else
  echo "== NO C COMPILER: tests run WITHOUT the race detector" >&2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "== go test ${race[*]:-} -shuffle=on"
status=0
go test "${race[@]}" -shuffle=on -timeout "$timeout" -v ./... >"$log" 2>&1 || status=$?
# Failures, figures and skips are worth reading; passes are counted.
grep -E '^(ok|FAIL|panic|---|\?)|^ +--- (FAIL|SKIP)|MEASURED|SKIPPED' "$log" | grep -vE '^--- PASS|^\?' || true
if ((status)); then
  echo "== output of what failed" >&2
  grep -vE '^(=== (RUN|PAUSE|CONT|NAME)|ok| *--- PASS|.*MEASURED)' "$log" | grep -B 60 -A 15 -E '^ *(--- FAIL|panic:|WARNING: DATA RACE)' | tail -600 >&2
fi
passed=$(grep -cE '^--- PASS' "$log" || true)
failed=$(grep -cE '^--- FAIL' "$log" || true)
skipped=$(grep -cE '^ *--- SKIP' "$log" || true)
if ((skipped)); then
  echo "== skipped, with the reason:"
  grep -A2 -E '^ *--- SKIP' "$log" | grep -vE '^--$' || true
fi

if ((status == 0 && ${#race[@]})); then
  echo "== bounds of time and memory, without the race detector"
  if ! CGO_ENABLED=0 go test -count 1 -v -run 'IsCheap' ./internal/strict ./ledger >"$log" 2>&1 || grep -q -- '--- SKIP' "$log"; then
    cat "$log" >&2
    failed=$((failed + 1))
    status=1
  fi
  grep -E '^(ok|FAIL)|MEASURED' "$log" || true
fi

if ((status == 0)); then
  fuzztime() { # the ledger's readers get longer: they read what anybody wrote
    local short=10s
    [[ $1 == */ledger ]] && short=30s
    [[ "${BEEYARD_NIGHTLY:-}" == 1 ]] && short=20m
    echo "${BEEYARD_FUZZTIME:-$short}"
  }
  for pkg in $(go list ./...); do
    for target in $(CGO_ENABLED=0 go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
      echo "== fuzz $pkg $target for $(fuzztime "$pkg")"
      if ! CGO_ENABLED=0 go test -run '^$' -fuzz "^$target\$" -fuzztime "$(fuzztime "$pkg")" "$pkg" >"$log" 2>&1; then
        tail -60 "$log" >&2
        failed=$((failed + 1))
        status=1
      fi
    done
  done
fi
echo "$passed passed, $failed failed, $skipped skipped"
exit "$status"
