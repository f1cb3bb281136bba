//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/testdata/require"
)

// outputs has each output of each verb: the flag, the words of a run that writes OUT, and the files of the folder
// of outputFolder that are inputs then.
var outputs = []struct{ flag, words, inputs string }{
	{"--output", "trace --counts counts runs -o OUT", "runs/*.sqlite counts/*"},
	{"--output", "bench --resume campaign -o OUT", "campaign/* campaign/launches/*/* my.sh"},
	{"--output", "compare runs/a.sqlite old.sqlite -o OUT", "runs/*.sqlite"},
	{"--output", "report campaign normal.json -o OUT", "campaign/campaign.sqlite normal.json"},
	{"trace --summary", "trace runs/a.sqlite --summary OUT", "runs/a.sqlite"},
	{"place --write-trtllm", "place counts --write-trtllm OUT", "counts/*"},
	{"place --write-sglang", "place counts --write-sglang OUT", "counts/*"},
	{"place --write-vllm", "place counts --write-vllm OUT", "counts/*"},
	{"place --write-ascend", "place counts --write-ascend OUT", "counts/*"},
	{"logits generate --cache", "logits generate --model c.json --ep 2 --tokens 1 --cache OUT", ""},
	{"bench --campaign", "bench --pairs 6 --campaign OUT -- ./my.sh", ""},
	{"report --png", "report campaign --png OUT", ""},
	{"report --svg", "report campaign --svg OUT", ""},
	{"hook --output", "hook -o OUT", ""},
	{"profile --dir", "profile --dry-run --dir OUT -- ./my.sh", ""},
	{"quickstart --dir", "quickstart --dir OUT", ""},
}

// outputFolder is a new working folder with inputs of every kind, and with stores
// and files that outputs must not replace.
func outputFolder(t *testing.T) {
	t.Helper()
	root := require.Value(filepath.Abs("../../testdata"))
	t.Chdir(t.TempDir())
	t.Setenv("PATH", ".:"+os.Getenv("PATH"))
	for name, text := range map[string]string{"c.json": "../router/presets/mixtral-8x7b.json",
		"runs/a.sqlite": "gptoss-ep4-loop/normal.sqlite", "old.sqlite": "gptoss-ep4-loop/perfect.sqlite",
		"my.sh": "#!/bin/sh\n" + engine(100, 120), "log.txt": "text", "notes.txt": "mine", "old.txt": "",
		"theirs/launches/1": ""} {
		if content, err := os.ReadFile(filepath.Join(root, text)); err == nil {
			text = string(content)
		}
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o755)))
	}
	require.NoError(t, errors.Join(os.Symlink("old.txt", "link"),
		os.CopyFS("counts", os.DirFS(filepath.Join(root, "gptoss-ep4-ranks/counts-normal")))))
	for _, line := range []string{"bench --pairs 6 --campaign campaign -- ./my.sh", "trace runs --json -o normal.json",
		"logits generate --model c.json --ep 2 --tokens 1 --cache cache"} {
		checkDone(t, line)
	}
}

// forcing adds --force, before the words of a command.
func forcing(line []string) []string {
	at := len(line)
	if i := slices.Index(line, "--"); i >= 0 {
		at = i
	}
	return slices.Insert(line, at, "--force")
}

// split is the words of a line, in which OUT is a file.
func split(line, out string) []string {
	return require.Value(launch.Words(strings.ReplaceAll(line, "OUT", launch.Quote([]string{out}))))
}

func checkDone(t *testing.T, line string) {
	t.Helper()
	_, stderr, code := invoke(t.Context(), split(line, "")...)
	if code != exitDone && code != exitNotComparable && code != exitInconclusive {
		t.Errorf("%s: exit %d, %s", line, code, stderr)
	}
}

// checkRefused runs a line that must end with exit 2, one line on stderr, and
// every file as it was.
func checkRefused(t *testing.T, args ...string) {
	t.Helper()
	before := contents(t)
	stdout, stderr, code := invoke(t.Context(), args...)
	if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%v: exit %d, stdout %q, stderr %q; want exit 2 and one line", args, code, stdout, stderr)
	}
	if after := contents(t); after != before {
		t.Errorf("%v: changed files", args)
	}
}

// contents is the names of all files, and what writing to one changes: what it is, its
// size, and when it was written.
func contents(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(".", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&all, path, info.Mode(), info.Sys().(*syscall.Stat_t).Ino, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	require.NoError(t, err)
	return all.String()
}

// No output of any verb destroys anything: no input under any name, no folder, and no file that this program did
// not write, but for --force. What shows that it is ours is replaced.
func TestOutputsDestroyNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("every verb with every output: no concern of the race detector")
	}
	outputFolder(t)
	known := map[string]bool{}
	for _, o := range outputs {
		known[o.flag] = true
	}
	each(rootCmd(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			name := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "moebalance") + " --" + f.Name)
			field, _ := flags.Field(f)
			_, file := field.(*target.File)
			_, folder := field.(*target.Folder)
			if (file && !known["--"+f.Name] || folder) && !known[name] {
				t.Errorf("%s is an output without a case", name)
			}
		})
	})
	for _, o := range outputs {
		checkRefused(t, split(o.words, "notes.txt")...) // of another, or no folder
		for _, pattern := range strings.Fields(o.inputs) {
			found, _ := filepath.Glob(pattern)
			absolute, err := filepath.Abs(found[0])
			require.NoError(t, errors.Join(err, os.Symlink(absolute, "soft")))
			for _, out := range []string{found[0], absolute, "soft"} {
				checkRefused(t, forcing(split(o.words, out))...)
			}
			os.Remove("soft")
		}
		if o.inputs != "" {
			checkRefused(t, split(o.words, "runs")...)
			out := "forced" + map[bool]string{true: ".json"}[strings.Contains(o.words, "sglang")] // which asks for it
			put(t, out, "\x1f\x8b")
			checkDone(t, launch.Quote(forcing(split(o.words, out))))
			if text, err := os.ReadFile(out); err != nil || len(text) == 2 {
				t.Errorf("%s --force did not replace the file: %q, %v", o.words, text, err)
			}
		}
	}
	for _, line := range []string{"models --json -o models.json", "trace runs/a.sqlite --summary a.summary",
		"counts counts -o counts.json", "bench --resume campaign -o bench.json", "hook -o hooks",
		"place counts --force --write-trtllm ours.yaml --write-sglang ours.json --write-vllm ours.v.json",
		"report campaign -o page.html --png figures --svg figures", "profile --dry-run --dir fresh -- ./my.sh"} {
		for range 2 {
			checkDone(t, line)
		}
	}
	for _, line := range []string{
		"place counts --write-sglang ours.json", // nothing in it tells who wrote it
		"bench --pairs 6 --campaign fresh -o fresh/campaign.sqlite -- ./my.sh",
		"report campaign -o figures/gain.html --svg notes.txt",
		"bench --pairs 6 --campaign theirs -- ./my.sh", // holds launches of others
		"quickstart --dir counts",
	} {
		checkRefused(t, split(line, "")...)
	}
	for name, text := range map[string]string{"p.txt": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "notes.md": "two words",
		"f.txt": "<svg></svg>\n", "f.json": "{\"a\": 1}\n", "place.json": `{"physical_to_logical_map": [[0, 1, 2, 3]]}`} {
		put(t, name, text)
		checkRefused(t, "models", "-o", name)
	}
}

// Two outputs of a verb are two files, whatever they are called: by a link, a way around, or in capitals where the file
// system ignores these; a file has two names there, as with a hard link. Capitals that it minds are another file. The words of a benchmark command, and what a shell makes of a pattern without quotes,
// are inputs.
func TestOutputsAreApart(t *testing.T) {
	outputFolder(t)
	require.NoError(t, os.Link("old.txt", "hard.txt"))
	for _, line := range []string{
		"trace runs/a.sqlite -o old.txt --summary OUT", "place counts --write-sglang old.txt --write-vllm OUT",
		"place counts -o old.txt --write-trtllm OUT",
	} {
		for _, again := range []string{"old.txt", "./runs/../old.txt", "link", "hard.txt"} {
			checkRefused(t, split(line, again)...)
		}
	}
	if _, err := os.Stat("OLD.txt"); err != nil {
		checkDone(t, "place counts -o new.txt --write-trtllm NEW.txt")
	}
	for _, line := range []string{
		"trace -o runs/a.sqlite old.sqlite runs/a.sqlite", "bench -o my.sh -- ./my.sh",
		"bench -o log.txt -- ./my.sh --log=log.txt", "bench -o log.txt -- sh -c './my.sh >log.txt'",
		"bench -o to-come.txt -- ./my.sh --log to-come.txt",
		"bench -o log.txt --server './my.sh log.txt' --ready http://localhost:1 --client ./my.sh",
	} {
		checkRefused(t, forcing(split(line, ""))...)
	}
}

// Verbs write through outputs. What else they write is their own: folders.
func TestVerbsWriteThroughTargets(t *testing.T) {
	writing := regexp.MustCompile(`\bos\.(Create|WriteFile|OpenFile|Rename|Remove|Truncate|Link|Symlink)`)
	sources := require.Value(filepath.Glob("*.go"))
	for _, path := range sources {
		text := get(path)
		if found := writing.Find([]byte(text)); found != nil && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s: %s writes past the guard of outputs", path, found)
		}
	}
}
