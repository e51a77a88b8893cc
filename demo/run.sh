#!/usr/bin/env bash
# The main job on real input: one task for each package of this repository,
# three workers, one of them killed in the middle, a report that needs all.
set -euo pipefail
cd "$(dirname "$0")/.."
bee=$PWD/bin/beeyard
root=$(mktemp -d "${TMPDIR:-/tmp}/beeyard-demo.XXXXXX")
export BEEYARD_ROOT=$root
# A demo must not depend on what the user has configured.
export XDG_CONFIG_HOME=$root/none

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
workers=()
cleanup() { for pid in "${workers[@]:-}"; do [[ -n $pid ]] && kill "$pid" 2>/dev/null || true; done; wait 2>/dev/null || true; }
trap cleanup EXIT

say "A run named audit, one task a package, and a report that depends on all:"
"$bee" run new audit >/dev/null
packages=$(go list -f '{{.Dir}}' ./... | sed "s|^$PWD|.|")
while read -r dir; do
  id=$(printf '%s' "${dir#./}" | tr -c 'A-Za-z0-9\n' '-' | sed 's/^[.-]*$/root/')
  printf '{"id":"%s","type":"package","payload":{"dir":"%s"}}\n' "$id" "$dir"
done <<<"$packages" >"$root/tasks.jsonl"
mapfile -t ids < <(sed -n 's/^{"id":"\([^"]*\)".*/\1/p' "$root/tasks.jsonl")
deps=$(IFS=,; echo "${ids[*]}")
"$bee" enqueue --run audit -f "$root/tasks.jsonl" >/dev/null
"$bee" enqueue --run audit --id report --type report --depends-on "$deps" >/dev/null
"$bee" ls audit --limit 5

say "Three workers. The second is killed with SIGKILL while it works:"
for n in 1 2 3; do
  # Each leads a process group of its own, as a service does.
  setsid "$bee" work --run audit --worker-id "worker-$n" --handler demo/handler.sh --until-empty \
    --poll-interval 200ms --stale-after 3s --heartbeat-interval 1s 2>"$root/worker-$n.log" &
  workers+=($!)
done
for _ in $(seq 600); do
  ls "$root"/audit/claimed/worker-2~*/*.json >/dev/null 2>&1 && break
  kill -0 "${workers[1]}" 2>/dev/null || break
  sleep 0.05
done
if kill -9 "${workers[1]}" 2>/dev/null; then
  wait "${workers[1]}" 2>/dev/null || true
  echo "worker-2 killed while it had: $(cd "$root/audit/claimed" && ls worker-2~*/ 2>/dev/null | sed -n 's/\.json$//p' | tr '\n' ' ')"
else
  echo "worker-2 had ended before it could be killed"
fi
"$bee" wait --run audit --timeout 15m || true
for n in 0 2; do wait "${workers[$n]}" || true; done
workers=()
grep -h reaped "$root"/worker-*.log || true

say "beeyard ls:"
"$bee" ls
"$bee" ls audit --limit 100
report=$root/audit/artifacts/report.md
say "The report:"
cat "$report"
say "$report"
