package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompletionOffersWhatIsThere: runs, tasks by state, states, formats.
func TestCompletionOffersWhatIsThere(t *testing.T) {
	y := newYard(t)
	for _, c := range []struct {
		words string
		want  []string
		not   []string
	}{
		{"ls ", []string{"r"}, nil},
		{"run resume ", []string{"r"}, nil},
		{"show --run ", []string{"r"}, nil},
		{"show ", []string{"ready", "blocked", "held", "claimed", "done", "failed"}, nil},
		{"show re", []string{"ready"}, []string{"done"}},
		{"retry ", []string{"failed", "done"}, []string{"ready", "claimed"}},
		{"unhold ", []string{"held"}, []string{"ready"}},
		{"ls r --state ", []string{"ready", "quarantined"}, nil},
		{"graph --format ", []string{"mermaid", "dot"}, nil},
		{"completion ", []string{"bash", "zsh", "fish", "powershell"}, nil},
		{"help ", []string{"tokens", "enqueue"}, nil},
		{"checkpoint ", []string{"write", "done"}, nil},
	} {
		words := strings.Split(c.words, " ")
		a := call{env: y.env()}.run(t, append([]string{"__complete"}, words...)...)
		offered := map[string]bool{}
		for _, line := range strings.Split(a.stdout, "\n") {
			word, _, _ := strings.Cut(line, "\t")
			offered[word] = true
		}
		for _, w := range c.want {
			if !offered[w] {
				t.Errorf("%q does not offer %q: %s", c.words, w, a.stdout)
			}
		}
		for _, w := range c.not {
			if offered[w] {
				t.Errorf("%q offers %q", c.words, w)
			}
		}
	}
	// Without a run, nothing is offered and nothing fails.
	a := call{env: map[string]string{"HOME": t.TempDir(), "BEEYARD_ROOT": t.TempDir()}}.run(t, "__complete", "show", "")
	if a.code != 0 || !strings.HasPrefix(a.stdout, ":") {
		t.Errorf("exit %d: %s%s", a.code, a.stdout, a.stderr)
	}
}

// TestCompletionScripts loads each script into its shell, where that exists.
func TestCompletionScripts(t *testing.T) {
	y := newYard(t)
	bin := binary(t)
	for shell, run := range map[string]func(script string) *exec.Cmd{
		"bash": func(script string) *exec.Cmd {
			// bash-completion's own helper may be missing: ours does for words without quotes.
			return exec.Command("bash", "--norc", "-c", `
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
source "$0" || exit 1
COMP_WORDS=(beeyard show rea); COMP_CWORD=2; COMP_LINE="beeyard show rea"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_beeyard
printf '%s\n' "${COMPREPLY[@]}"`, script)
		},
		"zsh": func(script string) *exec.Cmd {
			return exec.Command("zsh", "-f", "-c", `compdef() { :; }; source "$0" && (( $+functions[_beeyard] )) && echo ready`, script)
		},
		"fish": func(script string) *exec.Cmd {
			return exec.Command("fish", "--no-config", "-c", `source $argv[1]; complete -C "beeyard show rea"`, script)
		},
		"powershell": func(script string) *exec.Cmd {
			return exec.Command("pwsh", "-NoProfile", "-Command", `& { . $args[0]; (TabExpansion2 "beeyard show rea" 16).CompletionMatches.CompletionText }`, script)
		},
	} {
		t.Run(shell, func(t *testing.T) {
			a := call{env: y.env()}.run(t, "completion", shell)
			if a.code != 0 || !strings.Contains(a.stdout, "beeyard") {
				t.Fatalf("exit %d: %s", a.code, a.stderr)
			}
			script := filepath.Join(t.TempDir(), "script")
			if shell == "powershell" {
				script += ".ps1"
			}
			if err := os.WriteFile(script, []byte(a.stdout), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := run(script)
			if cmd.Err != nil {
				t.Skipf("NOT TESTED: %s is not installed: %v", shell, cmd.Err)
			}
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "BEEYARD_ROOT="+y.root, "BEEYARD_RUN=r")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !strings.Contains(string(out), "ready") {
				t.Errorf("it does not offer the task: %s", out)
			}
		})
	}
}
