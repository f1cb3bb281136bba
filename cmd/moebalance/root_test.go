package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
	cutTensors := file("rank0.safetensors", "\x78\x00\x00\x00\x00\x00\x00\x00{\"0_0\":{\"dtype\"")
	t.Setenv("PATH", dir) // no nsys to convert reports with

	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "needs a verb", nil},
		{exitUsage, `did you mean "trace"`, []string{"trcae"}},
		{exitUsage, "unknown flag", []string{"trace", "--nope", "x"}},
		{exitUsage, "want at least one export", []string{"trace"}},
		{exitUsage, "want text, json, csv, md", []string{"trace", "--format", "xml", loop + "normal.sqlite"}},
		{exitUsage, "no such table", []string{"trace", "--table", "nope", loop + "normal.sqlite"}},
		{exitUsage, "no folder", []string{"trace", "-o", dir + "/none/x", loop + "normal.sqlite"}},
		{exitFailed, "nsys export", []string{"trace", dir + "/missing.sqlite"}},
		{exitFailed, "truncated", []string{"trace", cut}},
		{exitFailed, "SQLite 3 database", []string{"trace", prose}},
		{exitFailed, "git lfs pull", []string{"trace", lfs}},
		{exitFailed, "nsys export", []string{"trace", rep}},
		{exitUsage, "normal side", []string{"compare", "a"}},
		{exitNotComparable, "swapped", []string{"compare", loop + "perfect.sqlite", loop + "normal.sqlite"}},
		{exitUsage, "after --", []string{"bench"}},
		{exitUsage, "unknown model", []string{"logits", "generate", "--model", "nope", "--ep", "8", "--cache", dir}},
		{exitUsage, "want one of generate", []string{"logits", "nope"}},
		{exitFailed, "no folder", []string{"logits", "verify", dir + "/none"}},
		{exitGate, filepath.Base(cutTensors), []string{"logits", "verify", dir}},
		{exitFailed, "no such file", []string{"report", dir + "/missing"}},
		{exitFailed, "no such file", []string{"counts", dir + "/missing"}},
		{exitUsage, "ranks", []string{"workload", "--ranks", "99"}},
		{exitUsage, "is not from an earlier quickstart", []string{"quickstart", "--dir", dir}},
	} {
		stdout, stderr, code := invoke(t.Context(), c.args...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit %d, want %d and %q; stderr %q", c.args, code, c.code, c.says, stderr)
		}
		if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "moebalance: ") {
			t.Errorf("%v: want one line, have %q", c.args, stderr)
		}
		if stdout != "" && code != exitNotComparable && code != exitGate {
			t.Errorf("%v: printed a result: %q", c.args, stdout)
		}
	}
}

func TestGateFails(t *testing.T) {
	if stdout, stderr, code := invoke(t.Context(), "trace", "--fail-above", "0.25", loop+"normal.sqlite"); code != exitGate || stdout == "" || !strings.Contains(stderr, "layer 1") {
		t.Errorf("normal: exit %d, %q", code, stderr)
	}
	if _, stderr, code := invoke(t.Context(), "trace", "--fail-above", "0.25", loop+"perfect.sqlite"); code != exitDone {
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

// A result written with -o is whole, and a failed one leaves nothing.
func TestOutputFileIsWholeOrAbsent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.json")
	if out, stderr, code := invoke(t.Context(), "trace", "--format", "json", "-o", path, loop+"normal.sqlite"); code != exitDone || out != "" {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, out, stderr)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if direct, _, _ := invoke(t.Context(), "trace", "--format", "json", loop+"normal.sqlite"); direct != string(written) {
		t.Error("the file differs from what stdout gets")
	}
	if _, _, code := invoke(t.Context(), "trace", "--format", "csv", "--table", "nope", "-o", filepath.Join(dir, "no.csv"), loop+"normal.sqlite"); code != exitUsage {
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
	plural := regexp.MustCompile(`(?m)(?:^|[^\d.,+×-])\b1 (?:complete |graph |replayed |batch |idle |rank )?(?:arguments|batches|cases|entries|experts|files|kernels|launches|layers|lines|models|pairs|ranges|ranks|requests|sizes|steps|tokens)\b`)
	one := fixtures + "gptoss-ep4-ranks/"
	for _, args := range [][]string{
		{"models", "gpt-oss-20b"},
		{"trace", fixtures + "gptoss-graph/node-normal.sqlite"},
		{"trace", fixtures + "gptoss-graph/graph-normal.sqlite"},
		{"trace", "--counts", one + "counts-normal", one + "normal.rank0.sqlite"},
		{"compare", "--trust-arms", one + "normal.rank0.sqlite", one + "perfect.rank0.sqlite"},
		{"compare", writeReports(t, "normal.jsonl", recordedLaunches(t, false)[0]), writeReports(t, "perfect.jsonl", recordedLaunches(t, true)[0])},
		{"counts", fixtures + "counts/engine.log"},
		{"report", "--title", "x", one + "normal.rank0.sqlite", one + "perfect.rank0.sqlite"},
		{"bench", "dataset", "--num-requests", "1", "--input-mean", "1", "--output-mean", "1"},
		{"bench", "--pairs", "6", "--campaign", filepath.Join(dir, "campaign"), "--", script(t, engine(100, 120))},
		{"logits", "generate", "--experts", "4", "--top-k", "1", "--ep", "1", "--tokens", "1", "--cache", filepath.Join(dir, "cache")},
		{"logits", "verify", filepath.Join(dir, "cache")},
		{"logits", "list", filepath.Join(dir, "cache")},
		{"logits", "plans", "--experts", "4", "--top-k", "1", "--ep", "1", "--tokens", "1"},
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
