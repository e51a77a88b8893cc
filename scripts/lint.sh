#!/usr/bin/env bash
# Linters live in a module of their own, so that they are no dependency of ours.
set -euo pipefail
cd "$(dirname "$0")/.."
go vet ./...
out=$(gofmt -l $(git ls-files '*.go'))
[[ -z "$out" ]] || { echo "not gofmt-clean:"; echo "$out"; exit 1; }
(cd tools && go build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck && go build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
bin/staticcheck ./...
bin/golangci-lint run ./...
