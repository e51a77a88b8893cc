# Two commands do everything on a fresh machine: make demo, make test.
SHELL := /bin/bash
export CGO_ENABLED ?= 0

GO      ?= go
BIN     := bin/beeyard
SOURCES := $(shell find . -name '*.go' -not -path './.git/*' -not -path './tools/*') go.mod go.sum
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: demo test bench lint nightly install fuzz clean

$(BIN): $(SOURCES)
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/beeyard

demo: $(BIN)
	@./demo/run.sh

# Everything: build, vet, tests (with the race detector where there is a C
# compiler), crash tests with strace, fuzzing for a few seconds each.
test: $(BIN)
	@./scripts/test.sh

bench: $(BIN)
	@./scripts/bench.sh

lint:
	@./scripts/lint.sh

# Long versions of the same tests; before a release.
nightly: $(BIN)
	@BEEYARD_NIGHTLY=1 ./scripts/test.sh

install: $(BIN)
	install -D -m 0755 $(BIN) $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/beeyard

clean:
	rm -rf bin dist
