package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

var update = flag.Bool("update", false, "rewrite the outputs in README.md and testdata/README.md")

// TestReadmeIsTrue runs every command in the console blocks of the README and of testdata's, one after
// the other, beside the repository's testdata in a folder that they may write to,
// and compares what they print. A block is
//
//	```console
//	$ moebalance …
//	output
//	```
//
// Blocks of other languages are for commands whose output varies.
func TestReadmeIsTrue(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command of the README")
	}
	root := require.Value(filepath.Abs("../.."))
	t.Chdir(t.TempDir())
	require.NoError(t, os.Symlink(filepath.Join(root, "testdata"), "testdata"))
	checkFigures(t)
	for _, name := range []string{"README.md", "testdata/README.md"} {
		page := filepath.Join(root, name)
		text := get(page)
		fresh, commands := rerun(t, string(text))
		if commands == 0 {
			t.Fatalf("%s shows no command", name)
		}
		if words := len(strings.Fields(fresh)); name == "README.md" && words > 1000 {
			t.Errorf("%s has %d words, want at most 1,000", name, words)
		}
		if fresh == string(text) {
			continue
		}
		if !*update {
			t.Errorf("%s is out of date; go test ./cmd/moebalance -run Readme -update rewrites it\n%s",
				name, firstDifference(string(text), fresh))
			continue
		}
		put(t, page, fresh)
	}
}

// The recipes of the README are commands with flags that there are.
func TestReadmeRecipes(t *testing.T) {
	readme := get("../../README.md")
	commands := 0
	for line := range strings.Lines(strings.ReplaceAll(string(readme), "\\\n", "")) {
		if line, _, _ = strings.Cut(line, " #"); strings.HasPrefix(line, "moebalance ") && strings.Contains(line, " -") {
			checkCommand(t, line)
			commands++
		}
	}
	if commands < 7 {
		t.Errorf("%d commands", commands)
	}
}

// readmeFigures are the pictures of testdata/README.md and what they are drawn from.
var readmeFigures = map[string][]string{
	"expert-time.svg": {"testdata/gptoss-ep4-loop"},
	"gain.svg":        {"testdata/campaign-deepseek-ep4.json"},
}

// pixels are the cells of a heat map in a picture; what bytes they become is Go's to choose.
var pixels = regexp.MustCompile(`data:image[^"]*`)

// checkFigures draws these pictures anew and compares them byte for byte, but for pixels.
func checkFigures(t *testing.T) {
	t.Helper()
	for name, inputs := range readmeFigures {
		dir := t.TempDir()
		captured(t, append([]string{"report", "--svg", dir}, inputs...))
		drawn := get(filepath.Join(dir, name))
		kept := filepath.Join("testdata/figures", name)
		if *update {
			require.NoError(t, os.WriteFile(kept, []byte(drawn), 0o644))
		}
		if old, err := os.ReadFile(kept); err != nil || !bytes.Equal(pixels.ReplaceAll(old, nil), pixels.ReplaceAll([]byte(drawn), nil)) {
			t.Errorf("%s is not what report draws now (%v): -update draws it again", kept, err)
		}
	}
}

// rerun returns the text with the output of every console command replaced by
// what the command prints now.
func rerun(t *testing.T, text string) (fresh string, commands int) {
	var out strings.Builder
	console := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			console = strings.TrimSpace(line) == "```console"
		case console && strings.HasPrefix(line, "$ moebalance "):
			out.WriteString(line)
			out.WriteString(captured(t, strings.Fields(line)[2:]))
			commands++
			continue
		case console:
			continue
		}
		out.WriteString(line)
	}
	return out.String(), commands
}

func captured(t *testing.T, args []string) string {
	t.Helper()
	stdout, stderr, code := invoke(t.Context(), args...)
	if code != exitDone {
		t.Errorf("moebalance %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

func firstDifference(old, fresh string) string {
	a, b := strings.Split(old, "\n"), strings.Split(fresh, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "page:    " + a[i] + "\nprogram: " + b[i]
		}
	}
	return "one is longer than the other"
}
