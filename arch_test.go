package beeyard_test

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What a package may import from this module. Imports point down to the root
// package; only cmd/beeyard sees across. A package that is not listed fails.
var mayImport = map[string][]string{
	".":                {},
	"internal/clock":   {},
	"internal/durable": {".", "internal/clock"},
	"internal/proc":    {".", "internal/clock"},
	"internal/strict":  {"."},
	"spool":            {".", "internal/durable", "internal/strict", "internal/clock"},
	"spool/explore":    {},
	"ledger":           {".", "internal/durable", "internal/strict", "internal/clock", "internal/proc"},
	"worker":           {".", "internal/durable", "internal/strict", "internal/clock", "internal/proc"},
	"open":             {".", "spool", "internal/clock", "internal/proc"},
	"cmd/beeyard":      {"*"},
	// A program of the test suite: what a run costs against bare system calls.
	"internal/bench": {"*"},
}

// Packages whose business is the file system, processes or time, and why.
var mayImportStd = map[string][]string{
	"os":      {"internal/durable", "internal/proc", "cmd/beeyard", "internal/bench"},
	"os/exec": {"internal/proc", "internal/bench"},
	"syscall": {"internal/durable", "internal/proc", "cmd/beeyard"},
}

// Third-party modules, each with its reason.
var modules = map[string]string{
	"github.com/spf13/cobra":              "command line, completion and help as Go tools have them",
	"github.com/spf13/pflag":              "cobra's flags, where a flag needs a type of its own",
	"github.com/fsnotify/fsnotify":        "file events; a hint, never the truth",
	"github.com/google/uuid":              "task lives (v7)",
	"github.com/landlock-lsm/go-landlock": "sandbox for handlers",
	"go.yaml.in/yaml/v3":                  "configuration and flows, the maintained line",
	"go.yaml.in/yaml/v4":                  "configuration and flows, the maintained line",
	"golang.org/x/sys":                    "system calls that package os does not offer: renameat2, getdents, cgroups",
	"golang.org/x/text":                   "Unicode normal form of ids that older programs wrote",
	"github.com/goccy/go-yaml":            "tests only: an independent reader of ledgers",
	"github.com/google/go-cmp":            "tests only: readable differences",
	"github.com/rogpeppe/go-internal":     "tests only: command line scripts (testscript)",
	"go.uber.org/goleak":                  "tests only: no goroutine outlives its owner",
	"pgregory.net/rapid":                  "tests only: properties",
}

type sourceFile struct {
	pkg   string // slash path of the folder
	path  string
	test  bool
	ast   *ast.File
	lines int
}

func sources(t *testing.T) []sourceFile {
	t.Helper()
	var all []sourceFile
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); path != "." && (strings.HasPrefix(n, ".") || n == "testdata" || n == "bin" || n == "dist") {
				return fs.SkipDir
			}
			// A module of its own (tools) is not ours to rule.
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, path, data, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, sourceFile{
			pkg: filepath.ToSlash(filepath.Dir(path)), path: path, test: strings.HasSuffix(path, "_test.go"),
			ast: f, lines: bytes.Count(data, []byte("\n")),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("found only %d Go files: the walk is broken", len(all))
	}
	return all
}

func imports(f sourceFile) []string {
	var out []string
	for _, s := range f.ast.Imports {
		p, _ := strconv.Unquote(s.Path.Value)
		out = append(out, p)
	}
	return out
}

func TestImportsPointDown(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		allowed, known := mayImport[f.pkg]
		if !known {
			t.Errorf("%s: package %s has no import rule; add it to arch_test.go with an ADR", f.path, f.pkg)
			continue
		}
		for _, imp := range imports(f) {
			var rel string
			switch {
			case imp == "beeyard":
				rel = "."
			case strings.HasPrefix(imp, "beeyard/"):
				rel = strings.TrimPrefix(imp, "beeyard/")
			default:
				continue
			}
			if !slices.Contains(allowed, rel) && !slices.Contains(allowed, "*") {
				t.Errorf("%s imports %s: package %s may import %v", f.path, imp, f.pkg, allowed)
			}
		}
	}
}

func TestFilesProcessesAndTimeHaveOneHome(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		for _, imp := range imports(f) {
			if homes, ruled := mayImportStd[imp]; ruled && !slices.Contains(homes, f.pkg) {
				t.Errorf("%s imports %s: that is the business of %v", f.path, imp, homes)
			}
		}
	}
	forbidden := map[string][]string{
		"time": {"Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Since", "Until"},
	}
	homes := []string{"internal/clock", "internal/bench"}
	// Bounds on system objects, not on what the domain does: kernel waits of
	// child processes, and the command line's own progress display.
	exempt := []string{"internal/proc"}
	for _, f := range sources(t) {
		if f.test || slices.Contains(homes, f.pkg) || slices.Contains(exempt, f.pkg) {
			continue
		}
		full, err := parser.ParseFile(token.NewFileSet(), f.path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(full, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && slices.Contains(forbidden[id.Name], sel.Sel.Name) && id.Obj == nil {
				t.Errorf("%s uses %s.%s: take a clock.Clock", f.path, id.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

func TestRootPackageIsPure(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || f.pkg != "." {
			continue
		}
		for _, imp := range imports(f) {
			for _, bad := range []string{"os", "net", "database", "syscall"} {
				if imp == bad || strings.HasPrefix(imp, bad+"/") {
					t.Errorf("%s imports %s: the domain does no I/O", f.path, imp)
				}
			}
			if strings.Contains(imp, ".") {
				t.Errorf("%s imports %s: the domain uses the standard library only", f.path, imp)
			}
		}
	}
}

func TestFileSizes(t *testing.T) {
	var sizes []int
	for _, f := range sources(t) {
		if f.lines > 500 {
			t.Errorf("%s has %d lines; find the second thing in it", f.path, f.lines)
		}
		if !f.test {
			sizes = append(sizes, f.lines)
		}
	}
	slices.Sort(sizes)
	t.Logf("%d files that are not tests: median %d lines, largest %d", len(sizes), sizes[len(sizes)/2], sizes[len(sizes)-1])
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	doc := map[string]bool{}
	for _, f := range sources(t) {
		if !f.test {
			doc[f.pkg] = doc[f.pkg] || f.ast.Doc != nil && len(f.ast.Doc.Text()) > 40
		}
	}
	for p, ok := range doc {
		if !ok {
			t.Errorf("package %s has no comment that says what it is for", p)
		}
	}
}

func TestEveryModuleHasAReason(t *testing.T) {
	f, err := os.Open("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	direct := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if strings.Contains(line, "// indirect") || strings.HasPrefix(line, "module") || strings.HasPrefix(line, "go ") {
			continue
		}
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) < 2 || !strings.Contains(fields[0], ".") {
			continue
		}
		direct++
		if modules[fields[0]] == "" {
			t.Errorf("go.mod needs %s, and arch_test.go does not say why", fields[0])
		}
	}
	if direct == 0 {
		t.Fatal("no direct requirement was read: the reader is broken")
	}
}
