package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeTour runs every line of the README's tour, in its order, as a
// reader would: one folder, a handler that does something, no configuration.
func TestReadmeTour(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	must(t, err)
	_, tour, ok := strings.Cut(string(readme), "## A tour of five minutes")
	if !ok {
		t.Fatal("the README has no tour")
	}
	tour, _, _ = strings.Cut(tour, "\n## ")
	var lines []string
	for i, block := range strings.Split(tour, "```") {
		if i%2 == 1 {
			for line := range strings.Lines(block) {
				if line = strings.TrimSpace(line); line != "" {
					lines = append(lines, line)
				}
			}
		}
	}
	if len(lines) < 12 {
		t.Fatalf("the tour has only %d lines", len(lines))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"check.sh":     "#!/bin/sh\ncat > \"$BEEYARD_ARTIFACT_PATH\"\necho checked $BEEYARD_TASK_ID\n",
		"audit.sh":     "#!/bin/sh\necho \"audited $1\" > \"$BEEYARD_ARTIFACT_PATH\"\n",
		"summarize.sh": "#!/bin/sh\ncat \"$BEEYARD_RUN\"/artifacts/*.md > \"$BEEYARD_ARTIFACT_PATH\"\n",
		"repos.txt":    "one\ntwo words\nthree\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	env := append(cleanEnv(), "HOME="+dir, "PATH="+filepath.Dir(binary(t))+":"+os.Getenv("PATH"))
	for _, line := range lines {
		cmd := exec.CommandContext(testContext(t), "/bin/sh", "-c", line)
		cmd.Dir, cmd.Env = dir, env
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s\n%v\n%s%s", line, err, out, errs.String())
		}
		var claim struct {
			Token string `json:"token"`
		}
		if strings.HasPrefix(line, "beeyard claim") {
			if err := json.Unmarshal(out, &claim); err != nil || claim.Token == "" {
				t.Fatalf("%s printed no token: %s", line, out)
			}
			env = append(env, "TOKEN="+claim.Token)
		}
	}
	sum, err := filepath.Glob(filepath.Join(dir, ".swarm", "lines", "artifacts", "then-*.md"))
	if err != nil || len(sum) != 1 {
		t.Fatalf("the summary of each: %v, %v", sum, err)
	}
	text, err := os.ReadFile(sum[0])
	if err != nil || !strings.Contains(string(text), "audited two words") {
		t.Fatalf("summary: %s, %v", text, err)
	}
}

// cleanEnv is this process's environment without what would configure beeyard.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "BEEYARD_") || name == "HOME" || name == "PATH" || strings.HasPrefix(name, "XDG_") {
			continue
		}
		env = append(env, kv)
	}
	return env
}
