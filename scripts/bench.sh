#!/usr/bin/env bash
# Ratios within one run on this machine; see docs/benchmarks.md for what they mean.
# The folder must be on the disk that runs live on: BEEYARD_BENCH_DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
CGO_ENABLED=0 go build -o bin/bench ./internal/bench
status=0
bin/bench -binary bin/beeyard -dir "${BEEYARD_BENCH_DIR:-}" "$@" || status=$?
if (($# == 0)); then
  echo "== the ledger"
  BEEYARD_BENCH=1 go test -run 'Bench|Measure' -count 1 -v ./ledger 2>&1 | grep -E 'MEASURED|FAIL|^ok' || status=1
  for old in swarm-cli worker_loop.sh sweep-state.py; do
    command -v "$old" >/dev/null || echo "== $old is not installed: nothing of ours is measured beside it"
  done
fi
exit "$status"
