package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const loop = "../../testdata/gptoss-ep4-loop/"

// Every way of asking wrongly, or for what is not there, ends with the right
// code, one line on stderr that helps, and nothing on stdout.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, err := os.ReadFile(loop + "normal.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	cut := file("cut.sqlite", string(whole[:len(whole)/3]))
	prose := file("prose.sqlite", "not a database, a sentence\n")
	lfs := file("lfs.sqlite", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
	rep := file("run.nsys-rep", "\x00\x01\x02")
	file("rank0.safetensors", "\x78\x00\x00\x00\x00\x00\x00\x00{\"0_0\":{\"dtype\"")
	t.Setenv("PATH", dir) // no nsys to convert reports with

	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "needs a verb", nil},
		{exitUsage, `did you mean "trace"`, []string{"trcae"}},
		{exitUsage, `did you mean "trace"`, []string{"help", "trcae"}},
		{exitUsage, `did you mean "numbers"?`, []string{"help", "numbrs"}},
		{exitUsage, "moebalance: unknown flag: --versio", []string{"--versio"}},
		{exitUsage, "unknown flag: --nope; see", []string{"trace", "--nope", "x"}},
		{exitUsage, `unknown flag: --tabel; did you mean "--table"?`, []string{"trace", "--tabel", "x"}},
		{exitUsage, `did you mean "--format"?`, []string{"trace", "-format", "x"}},
		{exitUsage, `trace: --format: want one of text, json, csv, md, have "jsn"; did you mean "json"?`,
			[]string{"trace", "--format", "jsn", "x"}},
		{exitUsage, `"imbalnce" in this result: want one of`, []string{"trace", "--table", "imbalnce", loop + "normal.sqlite"}},
		{exitUsage, `did you mean "imbalance"?`, []string{"trace", "--table", "imbalnce", loop + "normal.sqlite"}},
		{exitUsage, `bench: --timeout: want a time with its unit, such as 30s, 10m or 2h, have "10"`,
			[]string{"bench", "--timeout", "10", "--", "x"}},
		{exitUsage, `--pairs: want a whole number, such as 8, have "8 pairs"`, []string{"bench", "--pairs", "8 pairs",
			"--", "x"}},
		{exitUsage, `--treatment: unknown treatment "vlm": want trtllm, vllm, hook, sglang, vllm-ascend, lmdeploy, atom, lightllm or env:NAME=VALUE; did you mean "vllm"?`, []string{"bench", "--treatment", "vlm", "--", "x"}},
		{exitUsage, `--ep: want whole numbers such as 1,8,64 or the range 1-16 or 1-64:8, have "4-"`,
			[]string{"logits", "plans", "--ep=4-"}},
		{exitUsage, `have "diagnal"; did you mean "diagonal"?`, []string{"logits", "plans", "--plans", "diagnal",
			"--model", "deepseek-v3"}},
		{exitUsage, "--threshold: want 95% if a percentage is meant", []string{"compare", "--threshold", "95", "a",
			"b"}},
		{exitUsage, "--brief is one line of text", []string{"models", "--brief", "--format", "json"}},
		{exitUsage, `--phase: "api_key: (redacted)": want PHASE=REGEX`,
			[]string{"trace", "--phase", "api_key: sk-1", loop + "normal.sqlite"}},
		{exitFailed, "this is a trace, not counts: 'moebalance trace' reads it",
			[]string{"counts", loop + "normal.sqlite"}},
		{exitFailed, "this is a trace, not counts: 'moebalance trace' reads it",
			[]string{"place", "../../testdata/gptoss-ep4-loop"}},
		{exitFailed, "this is a trace, not counts: 'moebalance trace' reads it",
			[]string{"place", "../../testdata/torch/rank0.pt.trace.json"}},
		{exitFailed, "this is a trace, not counts: 'moebalance trace' reads it",
			[]string{"place", "../../testdata/field/results/vllm-qwen3-normal.rank0.json.gz"}},
		{exitFailed, "this is a result of moebalance (", []string{"place", "../../testdata/campaign-qwen3-ep4.json"}},
		{exitFailed, "unknown format of JSON: it is empty and", []string{"counts", file("empty.json", "{}")}},
		{exitFailed, "moebalance: \\x1b(none\\xff: no such file", []string{"counts", "\x1b(none\xff"}},
		{exitFailed, `have "HF_TOKEN=(redacted)"`,
			[]string{"counts", file("secret.csv", "layer,expert,count\n0,1,HF_TOKEN=hf_1\n")}},
		{exitUsage, "want at least one export", []string{"trace"}},
		{exitUsage, "want one of text, json, csv, md", []string{"trace", "--format", "xml", loop + "normal.sqlite"}},
		{exitUsage, "no such table", []string{"trace", "--table", "nope", loop + "normal.sqlite"}},
		{exitUsage, "no folder", []string{"trace", "-o", dir + "/none/x", loop + "normal.sqlite"}},
		{exitFailed, "no such file", []string{"trace", dir + "/missing.sqlite"}},
		{exitFailed, "truncated", []string{"trace", cut}},
		{exitFailed, "want an nsys export (SQLite) or a PyTorch trace (JSON)", []string{"trace", prose}},
		{exitFailed, "git lfs pull", []string{"trace", lfs}},
		{exitFailed, "nsys export", []string{"trace", rep}},
		{exitUsage, "normal side", []string{"compare", loop + "normal.sqlite"}},
		{exitFailed, "no such file", []string{"compare", "a"}},
		{exitNotComparable, "swapped", []string{"compare", loop + "perfect.sqlite", loop + "normal.sqlite"}},
		{exitUsage, "after --", []string{"bench"}},
		{exitUsage, "unknown model", []string{"logits", "generate", "--model", "nope", "--ep", "8", "--cache", dir}},
		{exitUsage, "want one of generate", []string{"logits", "nope"}},
		{exitFailed, "no cache", []string{"logits", "verify", dir + "/none"}},
		{exitFailed, "no manifest.json", []string{"logits", "verify", dir}},
		{exitFailed, "no such file", []string{"report", dir + "/missing"}},
		{exitFailed, "no such file", []string{"counts", dir + "/missing"}},
		{exitUsage, "ranks", []string{"workload", "--ranks", "99"}},
		{exitUsage, "want a new or empty folder", []string{"quickstart", "--dir", dir}},
	} {
		stdout, stderr, code := invoke(t.Context(), c.args...)
		if code != c.code || !strings.Contains(stderr+stdout, c.says) {
			t.Errorf("%v: exit %d, want %d and %q; stderr %q", c.args, code, c.code, c.says, stderr)
		}
		if strings.Count(stderr, "\n") != 1 || strings.Count(stderr, "moebalance: ") != 1 {
			t.Errorf("%v: want one line, have %q", c.args, stderr)
		}
		if stdout != "" && code != exitNotComparable && code != exitGate {
			t.Errorf("%v: printed a result: %q", c.args, stdout)
		}
	}
}

func TestGateFails(t *testing.T) {
	if stdout, stderr, code := invoke(t.Context(), "trace", "--fail-above", "0.25",
		loop+"normal.sqlite"); code != exitGate || stdout == "" || !strings.Contains(stderr, "layer 1") {
		t.Errorf("normal: exit %d, %q", code, stderr)
	}
	if _, stderr, code := invoke(t.Context(), "trace", "--fail-above", "0.25",
		loop+"perfect.sqlite"); code != exitDone {
		t.Errorf("perfect: exit %d, %q", code, stderr)
	}
}

func TestVersionAndHelp(t *testing.T) {
	if out, _, code := invoke(t.Context(), "--version"); code != exitDone || !strings.Contains(out, version) {
		t.Errorf("--version: exit %d, %q", code, out)
	}
	for _, c := range rootCmd().Commands() {
		out, _, code := invoke(t.Context(), c.Name(), "--help")
		if code != exitDone || c.Runnable() != strings.Contains(out, "Usage:") { // topics only have text
			t.Errorf("%s --help: exit %d, %q", c.Name(), code, out)
		}
		if len(c.Short) >= 60 {
			t.Errorf("%s: short help of %d characters, want under 60", c.Name(), len(c.Short))
		}
	}
}

// The shell gets the values of flags: those that every verb has, and those of one.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"tra":                                   "trace",
		"trace --thr":                           "--threshold",
		"logits plans --model ":                 "deepseek-v3",
		"models ":                               "mixtral-8x22b",
		"logits plans --plans ":                 "diagonal",
		"trace --table ":                        "arrivals",
		"compare --table ":                      "phases",
		"bench --table ":                        "points",
		"place --format ":                       "csv",
		"bench --metric ":                       "output_throughput",
		"compare --metric ":                     "ttft_mean",
		"profile --treatment ":                  "vllm",
		"logits generate --method ":             "DeepSeekV3",
		"bench --require-proof ":                "measured",
		"logits generate --dtype ":              "bfloat16",
		"logits generate --plan trtllm-gen1 --": "--brief",
	} {
		out, _, code := invoke(t.Context(), append([]string{"__complete"}, strings.Split(line, " ")...)...)
		var values []string
		for line := range strings.Lines(out) {
			if value, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(value, ":") &&
				value != "Completion" {
				values = append(values, value)
			}
		}
		if code != exitDone || !slices.Contains(values, want) {
			t.Errorf("%q: exit %d, %q, want %q", line, code, values, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, _, code := invoke(t.Context(), "completion", shell); code != exitDone ||
			!strings.Contains(out, "moebalance") {
			t.Errorf("completion %s: exit %d", shell, code)
		}
	}
}

// Every verb with tables can complete their names.
func TestEveryTableIsCompleted(t *testing.T) {
	each(rootCmd(), func(c *cobra.Command) {
		if c.Flags().Lookup("table") == nil {
			return
		}
		names, ok := c.GetFlagCompletionFunc("table")
		if !ok {
			t.Fatalf("%s: --table has no completion", c.CommandPath())
		}
		if values, _ := names(c, nil, ""); len(values) == 0 || slices.Contains(values, "") {
			t.Errorf("%s: tables %q", c.CommandPath(), values)
		}
	})
}

func each(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		each(sub, do)
	}
}

// checkCommand parses a command of this program with its flags, and returns its words and its verb.
func checkCommand(t *testing.T, line string) (words []string, verb *cobra.Command) {
	t.Helper()
	words, err := launch.Words(line)
	at := slices.Index(words, "moebalance")
	if err != nil || at < 0 {
		t.Errorf("%q is no command: %v", line, err)
		return nil, nil
	}
	verb, rest, err := rootCmd().Find(words[at+1:])
	if err == nil {
		err = verb.ParseFlags(rest)
	}
	if err == nil {
		err = verb.ValidateArgs(verb.Flags().Args())
	}
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("%q: %v", line, err)
	}
	return words, verb
}

// The examples in help are commands of this program with flags that it has, and their
// inputs are in the repository.
func TestHelpExamples(t *testing.T) {
	each(rootCmd(), func(c *cobra.Command) {
		if c.Example == "" && c.Runnable() && !c.HasSubCommands() && c.Name() != "help" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			words, found := checkCommand(t, line)
			if found == nil || found.CommandPath() != c.CommandPath() && c.Name() != "workload" {
				t.Errorf("%s: %q runs %v", c.CommandPath(), line, words)
				continue
			}
			for _, word := range words {
				if !strings.HasPrefix(word, "testdata/") {
					continue
				}
				if files, err := filepath.Glob("../../" + word); err != nil || files == nil {
					t.Errorf("%q: %s is not there", line, word)
				}
			}
		}
	})
}

// Root help says what to start with.
func TestHelpIsGrouped(t *testing.T) {
	out, _, _ := invoke(t.Context(), "--help")
	for _, want := range []string{"Start with one of these:", "completion bash", "\nRead what engines recorded:\n",
		"\n  trace "} {
		if !strings.Contains(out, want) {
			t.Errorf("--help: no %q in\n%s", want, out)
		}
	}
}

// The examples that --help shows of verbs that only read do what they say, where their inputs are here.
func TestHelpExamplesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("many commands; each verb has tests of its own")
	}
	data, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(data, "testdata"); err != nil {
		t.Fatal(err)
	}
	ran := 0
	each(rootCmd(), func(c *cobra.Command) {
		lines := strings.Split(c.Example, "\n")
		for _, line := range lines[:min(3, len(lines))] {
			words := strings.Fields(line)
			if !strings.Contains(line, "testdata/") || words[0] != "moebalance" {
				continue
			}
			var args []string
			for _, word := range words[1:] {
				if files, _ := filepath.Glob(word); files != nil { // as the shell would
					args = append(args, files...)
				} else {
					args = append(args, strings.Trim(word, "'"))
				}
			}
			ran++
			stdout, stderr, code := invoke(t.Context(), args...)
			if code != exitDone {
				t.Errorf("%s: exit %d, %s", line, code, stderr)
			}
			if c.Name() == "place" && strings.Contains(stdout, "Not enough evidence") {
				t.Errorf("%s shows no evidence:\n%s", line, stdout)
			}
		}
	})
	if ran < 10 {
		t.Errorf("%d examples ran", ran)
	}
}

// A result written with -o is whole, and a failed one leaves nothing.
func TestOutputFileIsWholeOrAbsent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.json")
	if out, stderr, code := invoke(t.Context(), "trace", "--format", "json", "-o", path,
		loop+"normal.sqlite"); code != exitDone || out != "" {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, out, stderr)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if direct, _, _ := invoke(t.Context(), "trace", "--format", "json",
		loop+"normal.sqlite"); direct != string(written) {
		t.Error("the file differs from what stdout gets")
	}
	if _, _, code := invoke(t.Context(), "trace", "--format", "csv", "--table", "nope", "-o",
		filepath.Join(dir, "no.csv"), loop+"normal.sqlite"); code != exitUsage {
		t.Errorf("unknown table: exit %d", code)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// One of something is in the singular, whatever verb says it.
func TestOneIsSingular(t *testing.T) {
	dir := t.TempDir()
	plural := regexp.MustCompile(
		`(?m)(?:^|[^\d.,+×-])\b1 (?:complete |graph |replayed |batch |idle |rank )?(?:arguments|batches|cases|entries|experts|files|kernels|launches|layers|lines|models|pairs|ranges|ranks|requests|sizes|steps|tokens)\b`)
	one := fixtures + "gptoss-ep4-ranks/"
	for _, args := range [][]string{
		{"models", "gpt-oss-20b"},
		{"trace", fixtures + "gptoss-graph/node-normal.sqlite"},
		{"trace", fixtures + "gptoss-graph/graph-normal.sqlite"},
		{"trace", "--counts", one + "counts-normal", one + "normal.rank0.sqlite"},
		{"compare", "--trust-arms", one + "normal.rank0.sqlite", one + "perfect.rank0.sqlite"},
		{"compare", writeReports(t, "normal.jsonl", recordedLaunches(t, false)[0]),
			writeReports(t, "perfect.jsonl", recordedLaunches(t, true)[0])},
		{"counts", fixtures + "counts/engine.log"},
		{"report", "--title", "x", one + "normal.rank0.sqlite", one + "perfect.rank0.sqlite"},
		{"bench", "dataset", "--num-requests", "1", "--input-mean", "1", "--output-mean", "1"},
		{"bench", "--pairs", "6", "--campaign", filepath.Join(dir, "campaign"), "--", script(t, engine(100, 120))},
		{"logits", "generate", "--model", "e4k1", "--ep", "1", "--tokens", "1", "--cache",
			filepath.Join(dir, "cache")},
		{"logits", "verify", filepath.Join(dir, "cache")},
		{"logits", "list", filepath.Join(dir, "cache")},
		{"logits", "plans", "--model", "e4k1", "--ep", "1", "--tokens", "1"},
		{"workload", "--ranks", "1", "--tokens", "1", "--steps", "1"},
		{"trace", "--rank", "one"}, {"compare", "x"}, // one line of error each
	} {
		stdout, stderr, _ := invoke(t.Context(), args...)
		if bad := plural.FindAllString(stdout+stderr, -1); bad != nil {
			t.Errorf("%v says %q", args, bad)
		}
		if stdout+stderr == "" {
			t.Errorf("%v says nothing", args)
		}
	}
}

// A list of sizes may hold ranges.
func TestRangesOfSizes(t *testing.T) {
	out, stderr, code := invoke(t.Context(), "logits", "plans", "--model", "e8k1", "--ep", "2-4:2",
		"--tokens", "1-3,8", "--plans", "diagonal", "--format", "csv")
	var cases []string
	for line := range strings.Lines(out) {
		ranks, rest, _ := strings.Cut(line, ",")
		tokens, _, _ := strings.Cut(rest, ",")
		cases = append(cases, ranks+"×"+tokens)
	}
	if want := "2×1 2×2 2×3 2×8 4×1 4×2 4×3 4×8"; code != exitDone || strings.Join(cases[1:], " ") != want {
		t.Errorf("exit %d, %s, %s", code, cases, stderr)
	}
}
