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
)

// outputCase is a way of writing an output: words, of which OUT is the target, and
// the files of the folder of outputFolder that are inputs then.
type outputCase struct {
	flag   string // as help has it: of a verb, or of all
	words  string
	inputs string
	again  string // the words of a legitimate run, if not the same
}

// outputCases has each output of each verb.
var outputCases = []outputCase{
	{"--output", "trace --counts counts 'runs/*' -o OUT", "runs/*.sqlite counts/*", "trace runs -o OUT"},
	{"--output", "bench --resume campaign -o OUT", "campaign/* campaign/launches/*/*", ""},
	{"--output", "compare runs/a.sqlite,other.sqlite old.sqlite -o OUT", "runs/*.sqlite", "compare runs/a.sqlite old.sqlite -o OUT"},
	{"--output", "report runs campaign normal.json -o OUT", "runs/a.sqlite campaign/campaign.jsonl normal.json",
		"report campaign -o OUT"},
	{"trace --summary", "trace runs/a.sqlite --summary OUT", "runs/a.sqlite", ""},
	{"place --write-trtllm", "place counts --write-trtllm OUT", "counts/*", ""},
	{"place --write-sglang", "place counts --write-sglang OUT", "counts/*", ""},
	{"place --write-vllm", "place counts --write-vllm OUT", "counts/*", ""},
	{"place --write-ascend", "place counts --write-ascend OUT", "counts/*", ""},
	{"logits generate --cache", "logits generate --model c.json --ep 2 --tokens 1 --cache OUT", "", ""},
	{"bench --campaign", "bench --pairs 6 --campaign OUT -- ./my.sh", "", "bench --resume campaign"},
	{"report --png", "report campaign --png OUT", "", ""},
	{"report --svg", "report campaign --svg OUT", "", ""},
	{"hook --output", "hook -o OUT", "", ""},
	{"profile --dir", "profile --dry-run --dir OUT -- ./my.sh", "", ""},
	{"quickstart --dir", "quickstart --dir OUT", "", "models"},
}

// outputFolder is a new working folder with inputs of every kind, and with stores
// and files that outputs must not replace.
func outputFolder(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	put := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755),
			os.WriteFile(name, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for name, from := range map[string]string{
		"c.json": "../router/presets/mixtral-8x7b.json", "runs/a.sqlite": "gptoss-ep4-loop/normal.sqlite",
		"old.sqlite": "gptoss-ep4-loop/perfect.sqlite",
	} {
		text, err := os.ReadFile(filepath.Join(root, from))
		if err != nil {
			t.Fatal(err)
		}
		put(name, string(text))
	}
	if err := os.CopyFS("counts", os.DirFS(filepath.Join(root, "gptoss-ep4-ranks/counts-normal"))); err != nil {
		t.Fatal(err)
	}
	put("my.sh", "#!/bin/sh\n"+engine(100, 120))
	put("p.json", "[[0,1,2,3],[4,5,6,7]]")
	put("log.txt", "text")
	put("notes.txt", "mine")
	for _, line := range []string{
		"bench --pairs 6 --campaign campaign -- ./my.sh",
		"logits generate --model c.json --ep 2 --tokens 1 --cache cache",
		"trace runs --format json -o normal.json",
	} {
		if _, stderr, code := invoke(t.Context(), strings.Fields(line)...); code != exitDone {
			t.Fatalf("%s: exit %d, %s", line, code, stderr)
		}
	}
}

func lineOf(words, out string) []string {
	var args []string
	for i, part := range strings.Split(words, "'") {
		if i%2 == 1 {
			args = append(args, part)
			continue
		}
		for _, w := range strings.Fields(part) {
			args = append(args, strings.ReplaceAll(w, "OUT", out))
		}
	}
	return args
}

// forcing adds --force, before the words of a command.
func forcing(line []string) []string {
	at := len(line)
	if i := slices.Index(line, "--"); i >= 0 {
		at = i
	}
	return slices.Insert(line, at, "--force")
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
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// No output of any verb destroys anything, and each can be written twice.
func TestOutputsDestroyNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("every verb with every output: no concern of the race detector")
	}
	outputFolder(t)
	folders, cases := map[string]bool{}, map[string]bool{} // by flag
	for _, c := range outputCases {
		cases[c.flag] = true
	}
	each(rootCmd(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			name := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "moebalance") + " --" + f.Name)
			_, file := flags.Field(f).(*target.File)
			_, folder := flags.Field(f).(*target.Folder)
			if folders[name] = folder; (file && !cases["--"+f.Name] || folder) && !cases[name] {
				t.Errorf("%s is an output without a case", name)
			}
		})
	})
	for _, c := range outputCases {
		if c.again == "" {
			c.again = c.words
		}
		t.Run(c.words, func(t *testing.T) {
			if folders[c.flag] {
				checkFolder(t, c)
			} else {
				checkFile(t, c)
			}
		})
	}
}

// Two outputs of a verb are two files, whatever they are called: by a link, a way
// around, or in capitals, which some file systems ignore.
func TestOutputsAreApart(t *testing.T) {
	outputFolder(t)
	if err := errors.Join(os.WriteFile("old.txt", nil, 0o644), os.Symlink("old.txt", "link"),
		os.Mkdir("figures", 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"trace runs/a.sqlite -o old.txt --summary OUT", "place counts --write-sglang old.txt --write-vllm OUT",
		"place counts -o old.txt --write-trtllm OUT",
	} {
		for _, again := range []string{"old.txt", "./runs/../old.txt", "link", "OLD.txt"} {
			checkRefused(t, lineOf(line, again)...)
		}
	}
	checkRefused(t, lineOf("bench --pairs 6 --campaign fresh -o fresh/campaign.jsonl -- ./my.sh", "")...)
	// What a folder of figures will hold is known when it is written.
	_, stderr, code := invoke(t.Context(), "report", "campaign", "-o", "figures/gain.svg", "--svg", "figures")
	if code != exitUsage {
		t.Errorf("a page that is named as a figure: exit %d, %s", code, stderr)
	}
	if _, stderr, code := invoke(t.Context(), "report", "campaign", "-o", "page.html", "--png", "both", "--svg",
		"both"); code != exitDone {
		t.Errorf("figures of both kinds in one folder: exit %d, %s", code, stderr)
	}
}

func checkFile(t *testing.T, c outputCase) {
	for _, pattern := range strings.Fields(c.inputs) {
		found, _ := filepath.Glob(pattern)
		if len(found) == 0 {
			t.Fatalf("no file %s", pattern)
		}
		absolute, _ := filepath.Abs(found[0])
		if err := os.Symlink(absolute, "soft"); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{found[0], absolute, "soft"} {
			checkRefused(t, forcing(lineOf(c.words, out))...)
		}
		if err := os.Remove("soft"); err != nil {
			t.Fatal(err)
		}
	}
	for _, old := range []string{"old.sqlite", "notes.txt"} {
		checkRefused(t, lineOf(c.words, old)...)
	}
	if err := os.WriteFile("forced", []byte("\x1f\x8b"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{lineOf(c.again, "result"+c.flag+strings.Fields(c.words)[0]),
		forcing(lineOf(c.again, "forced"))} {
		if _, stderr, code := invoke(t.Context(), line...); code == exitUsage || code == exitFailed {
			t.Errorf("%v: exit %d, %s", line, code, stderr)
		}
	}
	if text, err := os.ReadFile("forced"); err != nil || len(text) == 2 {
		t.Errorf("--force did not replace the file: %q, %v", text, err)
	}
}

func checkFolder(t *testing.T, c outputCase) {
	checkRefused(t, lineOf(c.words, "notes.txt")...)
	for range 2 {
		line := lineOf(c.again, "new-"+strings.Fields(c.flag)[0])
		if _, stderr, code := invoke(t.Context(), line...); code != exitDone && code != exitNotComparable {
			t.Errorf("%v: exit %d, %s", line, code, stderr)
		}
	}
}

// The words of a benchmark command, and what a shell makes of a pattern without
// quotes, are inputs.
func TestOutputsSpareCommandsAndPatterns(t *testing.T) {
	outputFolder(t)
	t.Setenv("PATH", ".:"+os.Getenv("PATH"))
	text, err := os.ReadFile("runs/a.sqlite")
	if err := errors.Join(err, os.WriteFile("runs/b.sqlite", text, 0o644)); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, "trace", "-o", "runs/a.sqlite", "runs/b.sqlite") // of -o runs/*.sqlite
	for _, line := range []string{
		"bench -o my.sh -- ./my.sh",
		"bench -o my.sh -- my.sh",
		"bench -o log.txt -- ./my.sh --log=log.txt",
		"bench -o log.txt -- sh -c './my.sh >log.txt'",
		"bench -o to-come.txt -- ./my.sh --log to-come.txt",
		"bench -o log.txt --server './my.sh log.txt' --ready http://localhost:1 --client ./my.sh",
	} {
		checkRefused(t, forcing(lineOf(line, ""))...)
	}
}

// A campaign does not touch a folder with launches of somebody else.
func TestBenchLeavesFoldersOfOthers(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.MkdirAll("theirs/launches", 0o755), os.WriteFile("theirs/launches/1", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, "bench", "--campaign", "theirs", "--", "true")
}

// Verbs write through outputs that are under guard. What else they write is their own: folders, and the hook in
// a campaign.
func TestVerbsWriteThroughTargets(t *testing.T) {
	writing := regexp.MustCompile(`\bos\.(Create|WriteFile|OpenFile|Rename|Remove|Truncate|Link|Symlink)`)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := writing.Find(text); found != nil && path != "hook.go" && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s: %s writes past the guard of outputs", path, found)
		}
	}
}

// What this program wrote and shows so is replaced, anything else only with --force.
func TestResultsReplaceOnlyResults(t *testing.T) {
	outputFolder(t)
	for name, text := range map[string]string{"p.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "notes.md": "two words",
		"f.svg": "<svg></svg>\n", "f.json": "{\"a\": 1}\n", "place.json": `{"physical_to_logical_map": [[0, 1, 2, 3]]}`,
		"place.yaml": "initial_global_assignments:\n  0: [0, 1, 2, 3]\nlayer_updates_per_iter: 0\nnum_slots: 4\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		checkRefused(t, "models", "-o", name)
	}
	for _, line := range []string{"models --format json -o models.json", "trace runs/a.sqlite --summary a.summary", "counts counts --format json -o counts.json",
		"bench --resume campaign --format json -o bench.json",
		"place counts --force --write-trtllm ours.yaml --write-sglang ours.json --write-vllm ours.v.json",
		"report campaign -o page.html --png figures --svg figures", "hook -o hooks"} {
		for range 2 {
			if _, stderr, code := invoke(t.Context(), strings.Fields(line)...); code != exitDone {
				t.Errorf("%s: exit %d, %s", line, code, stderr)
			}
		}
	}
	checkRefused(t, "place", "counts", "--write-sglang", "ours.json") // nothing in it tells who wrote it
}
