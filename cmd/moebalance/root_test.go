package main

import (
	"errors"
	"os"
	"path/filepath"
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
		{exitUsage, `did you mean "numbers"?`, []string{"help", "numbrs"}},
		{exitUsage, `unknown flag: --tabel; did you mean "--table"?`, []string{"trace", "--tabel", "x"}},
		{exitUsage, `did you mean "--format"?`, []string{"trace", "-format", "x"}},
		{exitUsage, `trace: --format: want one of text, json, csv, md, have "jsn"`,
			[]string{"trace", "--format", "jsn", "x"}},
		{exitUsage, `"imbalnce" in this result: want one of`, []string{"trace", "--table", "imbalnce", loop + "normal.sqlite"}},
		{exitUsage, `bench: --timeout: want a time with its unit, such as 30s, 10m or 2h, have "10"`,
			[]string{"bench", "--timeout", "10", "--", "x"}},
		{exitUsage, `--pairs: want a whole number, such as 8, have "8 pairs"`, []string{"bench", "--pairs", "8 pairs",
			"--", "x"}},
		{exitUsage, `--treatment: unknown treatment "vlm": want trtllm, vllm, hook, sglang, vllm-ascend, lmdeploy, atom, lightllm or env:NAME=VALUE; see`, []string{"bench", "--treatment", "vlm", "--", "x"}},
		{exitUsage, "--treatment sglang switches nothing in vllm: want --treatment atom or vllm or vllm-ascend",
			[]string{"bench", "--treatment", "sglang", "--", "env", "A=1", "/bin/vllm", "bench", "throughput"}},
		{exitUsage, "--treatment trtllm switches nothing in sglang",
			[]string{"profile", "--perfect", "--dry-run", "--", "mpirun", "-n", "2", "python3", "-m", "sglang.launch_server"}},
		{exitUsage, `--ep: want whole numbers such as 1,8,64 or the range 1-16 or 1-64:8, have "4-"`,
			[]string{"logits", "plans", "--ep=4-"}},
		{exitUsage, `have "diagnal"; did you mean "diagonal"?`, []string{"logits", "plans", "--plans", "diagnal",
			"--model", "deepseek-v3"}},
		{exitUsage, "--threshold: want 95% if a percentage is meant", []string{"compare", "--threshold", "95", "a",
			"b"}},
		{exitUsage, "workload: unknown flag: --format", []string{"workload", "--format", "json"}},
		{exitUsage, "report: unknown flag: --brief", []string{"report", "--brief", loop, "-o", "r.html"}},
		{exitUsage, "--brief is one line of text", []string{"models", "--brief", "--format", "json"}},
		{exitUsage, `--phase: "api_key: (redacted)": want PHASE=REGEX`,
			[]string{"trace", "--phase", "api_key: sk-1", loop + "normal.sqlite"}},
		{exitFailed, "this is a trace, not counts: 'moebalance trace' reads it",
			[]string{"counts", loop + "normal.sqlite"}},
		{exitFailed, "this is a trace, not counts: 'moebalance trace' reads it",
			[]string{"place", "../../testdata/torch/rank0.pt.trace.json"}},
		{exitFailed, "this is a result of moebalance, not counts", []string{"place", "../../testdata/campaign-qwen3-ep4.json"}},
		{exitFailed, "unknown format of JSON: it is empty and", []string{"counts", file("empty.json", "{}")}},
		{exitFailed, "moebalance: \\x1b(none\\xff: want a file", []string{"counts", "\x1b(none\xff"}},
		{exitFailed, `have "HF_TOKEN=(redacted)"`,
			[]string{"counts", file("secret.csv", "layer,expert,count\n0,1,HF_TOKEN=hf_1\n")}},
		{exitUsage, "want at least one export", []string{"trace"}},
		{exitUsage, "no folder", []string{"trace", "-o", dir + "/none/x", loop + "normal.sqlite"}},
		{exitFailed, "no such file", []string{"trace", dir + "/missing.sqlite"}},
		{exitFailed, "truncated", []string{"trace", cut}},
		{exitFailed, "want an nsys export (SQLite) or a PyTorch trace (JSON)", []string{"trace", prose}},
		{exitFailed, "git lfs pull", []string{"trace", lfs}},
		{exitFailed, "git lfs pull", []string{"report", lfs}},
		{exitNotComparable, "does not say how it was routed", []string{"report", "-o", dir + "/r.html",
			fixtures + "outputs/trtllm-bench-a.txt", fixtures + "outputs/trtllm-bench-b.txt"}},
		{exitUsage, "standard input is not read", []string{"trace", "-"}},
		{exitUsage, "URLs are not read: download it", []string{"compare", "http://localhost/a", "http://localhost/b"}},
		{exitFailed, "nsys export", []string{"trace", rep}},
		{exitUsage, "normal side", []string{"compare", loop + "normal.sqlite"}},
		{exitNotComparable, "swapped", []string{"compare", loop + "perfect.sqlite", loop + "normal.sqlite"}},
		{exitUsage, "after --", []string{"bench"}},
		{exitUsage, "unknown model", []string{"logits", "generate", "--model", "nope", "--ep", "8", "--cache", dir}},
		{exitUsage, `unknown verb "nope"`, []string{"logits", "nope"}},
		{exitUsage, `unknown verb "foo"`, []string{"completion", "foo"}},
		{exitUsage, `unknown verb "nope"`, []string{"help", "logits", "nope"}},
		{exitFailed, "no cache", []string{"logits", "verify", dir + "/none"}},
		{exitFailed, "no manifest.json", []string{"logits", "verify", dir}},
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

// The shell gets the values of flags, of all verbs and of one.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"tra":                                   "trace",
		"trace --thr":                           "--threshold",
		"logits plans --model ":                 "deepseek-v3",
		"trace --table ":                        "arrivals",
		"bench --table ":                        "points",
		"bench --metric ":                       "output_throughput",
		"profile --treatment ":                  "vllm",
		"logits generate --method ":             "DeepSeekV3",
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
