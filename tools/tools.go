//go:build tools

// Package tools pins the linters that `make lint` builds.
package tools

import (
	_ "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"
	_ "honnef.co/go/tools/cmd/staticcheck"
)
