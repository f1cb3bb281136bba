package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/gain"
)

// compareVerb runs compare from the repository's root.
func compareVerb(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Chdir("../..")
	return invoke(context.Background(), append([]string{"compare"}, args...)...)
}

const (
	loopNormal  = "testdata/gptoss-ep4-loop/normal.sqlite"
	loopPerfect = "testdata/gptoss-ep4-loop/perfect.sqlite"
)

// --brief is the first line of the answer, which fits on a line of text and needs none of
// the others; the exit code is the same.
func TestBriefIsTheAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("many commands; each verb has tests of its own")
	}
	t.Chdir("../..")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitDone, "Balanced routing is 22.9 % faster.",
			[]string{"compare", "--campaign", "testdata/campaign-deepseek-ep4.json", "--step-tokens", "4096",
				"testdata/deepseek-ep4-ranks"}},
		{exitDone, "Balanced routing is 22.9 % faster.", // the parts are of another step
			[]string{"compare", "--campaign", "testdata/campaign-deepseek-ep4.json", "testdata/deepseek-ep4-ranks"}},
		{exitDone, "Balanced routing would be about ", []string{"compare", "testdata/hf-qwen3-ep4"}},
		{exitDone, "No gain shown: balanced routing would change speed by ", []string{"compare", loopNormal, loopPerfect}},
		{exitNotComparable, "Not comparable: ", []string{"compare", loopPerfect, loopNormal}},
		{exitGate, "Under learned routing, late launches on rank 2 stall the others ", []string{"trace", "--fail-above", "0.5", loopNormal}},
		{exitDone, "Late launches on rank 1 stall the others ",
			[]string{"trace", "testdata/vllm/qwen3-normal.rank?.json.gz"}},
		{exitDone, "Rank 1 gets 1.51 × the mean load in layer 1 of counts-normal; ",
			[]string{"counts", "testdata/gptoss-ep4-ranks/counts-perfect", "testdata/gptoss-ep4-ranks/counts-normal"}},
		{exitUsage, "", []string{"counts", "--format", "json", "testdata/gptoss-ep4-ranks/counts-normal"}},
	} {
		whole, _, _ := runIn(t, c.args...)
		first, _, _ := strings.Cut(whole, "\n")
		out, errs, code := runIn(t, append(c.args, "--brief")...)
		if code != c.code || !strings.HasPrefix(out, c.want) || code != exitUsage && out != first+"\n" ||
			utf8.RuneCountInString(out) > 161 {
			t.Errorf("%q: exit %d, %d runes, %q\n%s", c.args, code, utf8.RuneCountInString(out), out, errs)
		}
	}
}

// withoutSwitch is a copy of an export whose arm was switched by another variable,
// as after 'bench --treatment env:MY_OWN_ROUTER_SWITCHX=1'.
func withoutSwitch(t *testing.T, export string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../..", export))
	if err != nil {
		t.Fatal(err)
	}
	// of the same length
	content = bytes.ReplaceAll(content, []byte("ENABLE_PERFECT_ROUTER"), []byte("MY_OWN_ROUTER_SWITCHX"))
	path := filepath.Join(t.TempDir(), filepath.Base(export))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeReports writes lines of the built-in workload's layout into a file.
func writeReports(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// recordedLaunches are the lines of one arm of the recorded campaign.
func recordedLaunches(t *testing.T, perfect bool) []string {
	t.Helper()
	b, err := os.ReadFile("../../testdata/pairs-abba.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		var row struct {
			Perfect bool `json:"perfect_router"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.Perfect == perfect {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestCompareVerbOnReports(t *testing.T) {
	normal, perfect := writeReports(t, "normal.jsonl", recordedLaunches(t, false)...),
		writeReports(t, "perfect.jsonl", recordedLaunches(t, true)...)
	out, errs, code := compareVerb(t, "--format", "json", normal, perfect)
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var r gain.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Kind != "bench" || r.Verdict != gain.Significant || r.Gain.N != 6 || len(r.Proof) != 2 ||
		r.Proof[0].Grade != gain.Claimed {
		t.Errorf("have %q %q, %d pairs, proof %+v", r.Kind, r.Verdict, r.Gain.N, r.Proof)
	}
	if g := float64(r.Gain.Estimate); g < 0.19 || g > 0.21 {
		t.Errorf("gain %g, want about 0.198", g)
	}
}

// otherPasses are two passes of one engine over different batches.
var otherPasses = []string{"testdata/field/results/vllm-qwen3-normal.rank?.json.gz",
	"testdata/field/results/vllm-qwen3-balanced.rank?.json.gz"}

func TestCompareVerbExitCodes(t *testing.T) {
	normalLines, perfectLines := recordedLaunches(t, false), recordedLaunches(t, true)
	normal, perfect := writeReports(t, "normal.jsonl", normalLines...),
		writeReports(t, "perfect.jsonl", perfectLines...)
	fewer := writeReports(t, "fewer.jsonl", normalLines[:4]...)
	fewerPerfect := writeReports(t, "fewer-p.jsonl", perfectLines[:4]...)
	judged := writeReports(t, "judged.json", `{"schema_version": 2, "kind": "trace"}`)
	silent := writeReports(t, "silent.txt", "speed 12.5 tok/s")
	faster := writeReports(t, "faster.txt", "speed 14.5 tok/s")
	broken := writeReports(t, "broken.sqlite", "this is no database, but it is long enough to look at")
	empty := t.TempDir()
	otherSwitch := []string{withoutSwitch(t, loopNormal), withoutSwitch(t, loopPerfect)}
	changed := func(name, from, to string) string {
		lines := strings.Join(perfectLines, "\n")
		if !strings.Contains(lines, from) {
			t.Fatalf("no %s in %.200s", from, lines)
		}
		return writeReports(t, name, strings.Split(strings.ReplaceAll(lines, from, to), "\n")...)
	}
	cases := []struct {
		what string
		args []string
		code int
		text string
	}{
		{"both perfect", []string{loopPerfect, "testdata/gptoss-ep4-ranks/perfect.rank*.sqlite"}, exitNotComparable,
			`the normal side records the arm "perfect"`},
		{"swapped", []string{loopPerfect, loopNormal}, exitNotComparable, "swapped"},
		{"two of one rank", []string{"testdata/gptoss-graph", loopPerfect}, exitFailed,
			"want exports of one run, one per rank, have two that claim rank 0 (by environment and by environment); give "},
		{"other models", []string{loopNormal, "testdata/deepseek-ep4-ranks/perfect.rank0.sqlite"}, exitNotComparable,
			"1 of 4 ranks in common"},
		{"counts of another run", []string{"--counts-normal", "testdata/deepseek-ep4-ranks/counts-normal", loopNormal,
			loopPerfect}, exitUsage, "do not match the trace"},
		{"counts of a log", []string{"--counts-perfect", "testdata/counts/engine.log", loopNormal, loopPerfect},
			exitFailed, "want slots per expert, have engine log lines"},
		{"counts beside a result", []string{"--counts-normal", "testdata/gptoss-ep4-ranks/counts-normal",
			writeReports(t, "traced.json", `{"schema_version": 1, "kind": "trace", "cells": []}`), loopPerfect},
			exitUsage, "judged already"},
		{"the same", []string{loopNormal, loopNormal}, exitNotComparable, "same recording"},
		{"missing", []string{"nowhere.sqlite", loopPerfect}, exitFailed,
			"nowhere.sqlite: want a file, a folder or a pattern, have no such file"},
		{"no match", []string{loopNormal, "nowhere*.sqlite"}, exitFailed, "no file matches"},
		{"empty folder", []string{loopNormal, empty}, exitFailed, "contains no file: want"},
		{"folders in a folder", []string{loopNormal, filepath.Dir(empty)}, exitFailed, "only folders: give "},
		{"no database", []string{broken, loopPerfect}, exitFailed, "broken.sqlite"},
		{"one side", []string{loopNormal}, exitUsage, "give the normal side and the perfect side"},
		{"named twice", []string{loopNormal + "," + loopNormal, loopPerfect}, exitUsage, "named twice"},
		{"two kinds", []string{loopNormal, perfect}, exitUsage, "of different kinds"},
		{"kinds in one side", []string{loopNormal + "," + normal, loopPerfect}, exitUsage, "of different kinds"},
		{"many without arms", []string{normal, perfect, "testdata/pairs.jsonl"}, exitUsage,
			"contains neither normal nor perfect"},
		{"many of one arm", []string{loopNormal, "testdata/gptoss-graph/*-normal.sqlite", "testdata/hf-qwen3-ep4-nsys/normal.rank0.sqlite"}, exitUsage,
			"has perfect in its name"},
		{"verdict demanded", []string{"--require-verdict", fewer, fewerPerfect}, exitInconclusive, "at least 6"},
		{"verdict demanded of traces", []string{"--require-verdict", loopNormal, loopPerfect}, exitUsage,
			"--require-verdict"},
		{"a result of trace", []string{judged, loopPerfect}, exitUsage, "summaries of them (trace --summary)"},
		{"unknown flag", []string{"--fast", loopNormal, loopPerfect}, exitUsage, "unknown flag"},
		{"report flag for traces", []string{"--metric", "x", loopNormal, loopPerfect}, exitUsage, "--metric"},
		{"a switch that captures do not record", otherSwitch, exitDone, ""},
		{"likewise on trust", append([]string{"--trust-arms"}, otherSwitch...), exitDone, ""},
		{"trust is no proof of balance", []string{"--trust-arms", loopPerfect, loopNormal}, exitNotComparable,
			"balance is not proved"},
		{"trace flag for reports", []string{"--counts-normal", "x", normal, perfect}, exitUsage,
			"benchmark reports: remove --counts-normal"},
		{"unequal numbers", []string{fewer, perfect}, exitUsage, "4 launches and the perfect side 6"},
		{"reports swapped", []string{perfect, normal}, exitNotComparable,
			"report of all 4 ranks: perfect router"},
		{"reports of unknown arm", []string{"--metric", `speed:tok/s:higher=speed ([\d.]+)`, silent, faster}, exitNotComparable,
			"--trust-arms"},
		{"the same report", []string{"--trust-arms", normal, perfect + "," + filepath.Dir(normal) + "/./normal.jsonl"},
			exitNotComparable, ", on both sides"},
		{"on trust", []string{"--trust-arms", "--metric", `speed:tok/s:higher=speed ([\d.]+)`, silent, faster}, exitDone, ""},
		{"no such metric", []string{"--metric", "ttft_p99", normal, perfect}, exitFailed, `no metric "ttft_p99"`},
		{"reports of half the batch",
			[]string{normal, changed("half.jsonl", `"tokens_per_rank": 1024`, `"tokens_per_rank": 512`)},
			exitNotComparable, "tokens_per_rank: normal 1024, perfect 512"},
		{"reports of another model",
			[]string{normal, changed("other.jsonl", `"router": "deepseek`, `"router": "other`)}, exitNotComparable,
			"router: normal deepseek"},
		{"reports of a loop", []string{normal, changed("loop.jsonl", `"experts": "grouped"`, `"experts": "loop"`)},
			exitNotComparable, "backend: normal grouped, perfect loop"},
		{"a build of a loop", []string{"--arm", "a", "--arm", "b", normal, changed("build.jsonl", `"experts": "grouped"`,
			`"experts": "loop"`)}, exitDone, ""},
		{"other passes", []string{otherPasses[0], otherPasses[1]}, exitNotComparable,
			"hold 8192 and 15872 tokens per step"},
		{"other passes of builds", append([]string{"--arm", "a", "--arm", "b"}, otherPasses...), exitNotComparable,
			"hold 8192 and 15872 tokens per step"},
		{"no report", []string{silent, faster}, exitFailed, "silent.txt"},
	}
	t.Chdir("../..")
	for _, k := range cases {
		out, errs, code := invoke(context.Background(), append([]string{"compare"}, k.args...)...)
		said := errs
		if code == exitNotComparable || code == exitInconclusive { // the reasons are in the answer, and once
			said += strings.Join(strings.Fields(out), " ")
		}
		if code != k.code || !strings.Contains(said, k.text) || strings.Count(errs, "\n") > 1 {
			t.Errorf("%s: exit %d, %q; want %d and %q in one line", k.what, code, errs, k.code, k.text)
		}
	}
}

// Two ranks of one run, as an unquoted pattern gives them, are no two arms: the answer says
// what to type.
func TestTwoRanksAreNoArms(t *testing.T) {
	const rank = "../../testdata/vllm/qwen3-normal.rank"
	out, errs, code := invoke(t.Context(), "compare", rank+"0.json.gz", rank+"1.json.gz")
	trace := "moebalance trace " + rank + "0.json.gz " + rank + "1.json.gz\n"
	if code != exitNotComparable || errs != "moebalance: not comparable\n" ||
		!strings.Contains(out, "Next: "+trace+"      moebalance compare NORMAL_DIR PERFECT_DIR\n") {
		t.Errorf("exit %d, answer %q, error %q", code, out, errs)
	}
}
