package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// traceVerb runs trace from the repository's root.
func traceVerb(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Chdir("../..")
	var out, errs bytes.Buffer
	code = run(context.Background(), append([]string{"trace"}, args...), strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

func TestTraceVerbOverview(t *testing.T) {
	out, errs, code := traceVerb(t, loopNormal)
	if code != exitDone || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	notes, _, _ := runIn(t, "trace", "--notes", loopNormal)
	out += notes
	for _, want := range []string{
		"even ranks would gain about 3.4 %.\nlate launches · ", "· normal arm\n",
		"evidence of the arm (normal): ENABLE_PERFECT_ROUTER=0",
		"tables: --table imbalance, kinds, stragglers, arrivals, ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// The keys that other programs rely on.
func TestTraceVerbJSON(t *testing.T) {
	out, _, code := traceVerb(t, "--format", "json", "--counts", "testdata/deepseek-ep4-ranks/counts-normal",
		"testdata/deepseek-ep4-ranks/normal.rank0.sqlite", "testdata/deepseek-ep4-ranks/normal.rank1.sqlite",
		"testdata/deepseek-ep4-ranks/normal.rank2.sqlite", "testdata/deepseek-ep4-ranks/normal.rank3.sqlite")
	if code != exitDone {
		t.Fatalf("exit %d", code)
	}
	var result map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatal(err)
	}
	lists := map[string][]string{
		"exports": {"path", "nsys_version", "schema_version", "kernels", "launches", "ranges", "ranks", "graph_mode",
			"warnings"},
		"kernels": {"name", "instances", "total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns"},
		"phases":  {"rank", "layer", "phase", "instances", "total_ns"},
		"experts": {"rank", "layer", "expert", "basis", "instances", "total_ns", "median_ns"},
		"imbalance": {"layer", "level", "quantity", "max_over_mean", "imbalance", "floor", "null_p95", "flagged",
			"worst"},
	}
	for list, keys := range lists {
		var rows []map[string]any
		if err := json.Unmarshal(result[list], &rows); err != nil || len(rows) == 0 {
			t.Fatalf("%s: %v, %d rows", list, err, len(rows))
		}
		for _, key := range keys {
			if _, ok := rows[0][key]; !ok {
				t.Errorf("%s has no %q: %v", list, key, rows[0])
			}
		}
	}
	var coverage map[string]any
	if err := json.Unmarshal(result["coverage"], &coverage); err != nil || len(coverage) != 4 ||
		coverage["launch_share"] != 1.0 {
		t.Errorf("coverage: %v, %v", coverage, err)
	}
	var traced trace.Trace
	if err := json.Unmarshal([]byte(out), &traced); err != nil {
		t.Fatal(err)
	}
	// 256 experts in each of 2 layers, allocated, since one kernel serves all;
	// together they have the time of the phase experts
	var allocated, experts int64
	for _, e := range traced.Experts {
		if e.Basis != imbalance.Allocated || !e.Known {
			t.Fatalf("have %+v", e)
		}
		allocated += e.TotalNS
	}
	for _, p := range traced.Phases {
		if p.Phase == trace.PhaseExperts {
			experts += p.TotalNS
		}
	}
	if len(traced.Experts) != 512 || allocated != experts {
		t.Errorf("%d experts with %d ns, the phase has %d", len(traced.Experts), allocated, experts)
	}
	loads := 0
	for _, s := range traced.Imbalance {
		if s.Quantity == imbalance.Load && s.Floor.Defined() && s.NullP95.Defined() {
			loads++
		}
	}
	if loads != 4 {
		t.Errorf("want the load of 2 layers at 2 levels with floor and null, have %d", loads)
	}
}

func TestTraceVerbSummaries(t *testing.T) {
	dir := t.TempDir()
	direct, _, _ := traceVerb(t, "--format", "json", "testdata/gptoss-ep4-ranks/normal.rank0.sqlite",
		"testdata/gptoss-ep4-ranks/normal.rank1.sqlite",
		"testdata/gptoss-ep4-ranks/normal.rank2.sqlite", "testdata/gptoss-ep4-ranks/normal.rank3.sqlite")
	var summaries []string
	for _, rank := range []string{"2", "0", "3", "1"} {
		path := filepath.Join(dir, rank)
		out, errs, code := runIn(t, "trace", "--summary", path, "testdata/gptoss-ep4-ranks/normal.rank"+rank+".sqlite")
		if code != exitDone || out != "" || errs != "" {
			t.Fatalf("exit %d, %q, %q", code, out, errs)
		}
		summaries = append(summaries, path)
	}
	merged, errs, code := runIn(t, append([]string{"trace", "--format", "json"}, summaries...)...)
	command := regexp.MustCompile(`"command": .*`) // names the files that were given
	if code != exitDone || command.ReplaceAllString(merged, "") != command.ReplaceAllString(direct, "") {
		t.Errorf("exit %d, %s: merged summaries are not the direct result", code, errs)
	}
}

// runIn runs the program where the test stands already.
func runIn(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

func TestTraceVerbExitCodes(t *testing.T) {
	t.Chdir("../..")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitDone, "", []string{"--fail-above", "0.6", loopNormal}},
		{exitGate, "expert-time imbalance of layer 1 is 51.5 %, limit 50 %",
			[]string{"--fail-above", "0.5", loopNormal}},
		{exitInconclusive, "2 of the run's 4 ranks were given",
			[]string{"--fail-above", "0.9", "testdata/gptoss-ep4-ranks/normal.rank0.sqlite",
				"testdata/gptoss-ep4-ranks/normal.rank1.sqlite"}},
		{exitInconclusive, "no layer has expert time",
			[]string{"--fail-above", "0.5", "testdata/gptoss-graph/node-normal.sqlite"}},
		{exitNotComparable, "of both arms by their names",
			[]string{"--fail-above", "0.9", "testdata/hf-qwen3-ep4/normal.rank0.json.gz",
				"testdata/hf-qwen3-ep4/perfect.rank1.json.gz"}},
		{exitGate, "expert-time imbalance of layer 2 is 67.9 %",
			[]string{"--fail-above", "0.5", "testdata/hf-qwen3-ep4/normal.rank?.json.gz"}},
		{exitUsage, "want PHASE=REGEX", []string{"--phase", "experts", loopNormal}},
		{exitNotComparable, "2 runs: 'testdata/gptoss-ep4-ranks/normal.rank*.sqlite', 'testdata/deepseek-ep4-ranks/normal.rank*.sqlite'; give those of one run", []string{"testdata/gptoss-ep4-ranks/normal.rank0.sqlite", "testdata/deepseek-ep4-ranks/normal.rank0.sqlite"}},
		{exitUsage, "--rank", []string{"--rank", "x", loopNormal}},
		{exitUsage, "no export \"nope.sqlite\"", []string{"--rank", "nope.sqlite=1", loopNormal}},
		{exitUsage, "(?P<step>", []string{"--step-pattern", "step", loopNormal}},
		{exitUsage, "missing closing", []string{"--layer-pattern", "(?P<layer>", loopNormal}},
		{exitUsage, "remove --output, --table", []string{"--summary", "nope", "-o", "none", "--table", "phases",
			loopNormal}},
		{exitUsage, "--summary: no folder \"nodir\"", []string{"--summary", "nodir/nope", loopNormal}},
		{exitUsage, "is named twice", []string{loopNormal, "testdata/../" + loopNormal}},
		{exitUsage, "rank 1 is given for the same export", []string{"--rank", "normal.sqlite=1", "--rank",
			"normal.sqlite=2", loopNormal}},
		{exitUsage, "N from 0 to 1048575", []string{"--rank", "3000000000", loopNormal}},
		{exitNotComparable, "of both arms by their names",
			[]string{"--fail-above", "0.5", "testdata/gptoss-ep4-ranks/normal.rank0.sqlite",
				"testdata/gptoss-ep4-ranks/perfect.rank1.sqlite"}},
		{exitUsage, "is an input", []string{"--summary", loopNormal, loopNormal}},
		{exitUsage, "do not match", []string{"--counts", "testdata/deepseek-ep4-ranks/counts-normal", loopNormal}},
		{exitUsage, "--threshold", []string{"--threshold", "-1", loopNormal}},
		{exitDone, "", []string{"--rank", "node-normal.sqlite=5", "testdata/gptoss-graph/node-normal.sqlite"}},
	} {
		out, errs, code := runIn(t, append([]string{"trace"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") > 1 {
			t.Errorf("%v: want exit %d with %q, have %d with %q", c.args, c.code, c.says, code, errs)
		}
		if (code == exitFailed || code == exitUsage) && out != "" {
			t.Errorf("%v: want nothing on stdout, have %q", c.args, out)
		}
	}
}

// Without ranges that name layers there is no layer −1 to blame. A layer is judged against
// its floor: a noisy one with a larger max/mean does not fail, and hides no other.
func TestTraceGate(t *testing.T) {
	row := func(layer router.OptInt, maxOverMean, floor router.Number) imbalance.Row {
		return imbalance.Row{Layer: layer, Level: router.LevelRank, Quantity: imbalance.Time, MaxOverMean: maxOverMean,
			Imbalance: maxOverMean - 1, Floor: floor}
	}
	for _, c := range []struct {
		rows []imbalance.Row
		want string
	}{
		{[]imbalance.Row{row(trace.NoID, 1.5, router.Undefined())}, "of all layers is 50.0 %"},
		{[]imbalance.Row{row(0, 1.3, 1.25)}, ""},
		{[]imbalance.Row{row(0, 1.3, 1.25), row(1, 1.2, 1.01)}, "of layer 1 is 20.0 %"},
		{nil, "no layer has expert time"},
	} {
		if err := traceGate(&trace.Trace{Imbalance: c.rows}, 0.1); fmt.Sprint(err) == "<nil>" != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: have %v", c.rows, err)
		}
	}
	// the decode steps are none that the answer is of
	decode := trace.StepKind{Name: "decode, 8 tokens", Steps: []int{1, 2, 3}, Time: imbalance.Summary{WorstLayer: 2,
		WorstMaxOverMean: 1.5, WorstFloor: 1.01}}
	trace := &trace.Trace{Imbalance: []imbalance.Row{row(0, 1.02, 1.01)}, StepKinds: []trace.StepKind{decode}}
	if err := traceGate(trace, 0.1); err == nil ||
		!strings.Contains(err.Error(), "of layer 2 is 50.0 % in steps 1 to 3 (decode, 8 tokens)") {
		t.Error(err)
	}
	if err := traceGate(trace, 0.6); err != nil {
		t.Error(err)
	}
}

func TestTraceVerbFormats(t *testing.T) {
	t.Chdir("../..")
	for format, want := range map[string]string{
		"csv": "rank,layer,phase,instances,total_ns,collective_ns,busy_ns\n0,,unknown,12,61758,0,61758\n",
		"md":  "| rank | layer | phase | kernels | total (ms) | collective (ms) | busy (ms) |",
	} {
		out, _, code := runIn(t, "trace", "--format", format, "--table", "phases", loopNormal)
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, no %q in\n%.400s", format, code, want, out)
		}
	}
}

// A folder of exports and a pattern in quotes stand for the exports, as in compare.
func TestTraceVerbResolvesPaths(t *testing.T) {
	t.Chdir("../..")
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ranks := "testdata/gptoss-ep4-ranks/normal.rank"
	want, _, _ := runIn(t, "trace", ranks+"0.sqlite", ranks+"1.sqlite")
	folder := t.TempDir()
	for _, rank := range []string{"0", "1"} {
		if err := os.Symlink(filepath.Join(home, ranks+rank+".sqlite"),
			filepath.Join(folder, "normal.rank"+rank+".sqlite")); err != nil {
			t.Fatal(err)
		}
	}
	for _, arg := range []string{folder, ranks + "[01].sqlite"} {
		if have, errs, code := runIn(t, "trace", arg); code != exitDone || have != want {
			t.Errorf("%s: exit %d, %s\n%s\nwant\n%s", arg, code, errs, have, want)
		}
	}
	result := filepath.Join(t.TempDir(), "normal.json")
	if _, errs, code := runIn(t, "trace", "--format", "json", "-o", result, folder); code != exitDone {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for says, args := range map[string][]string{
		"is named twice":      {folder, filepath.Join(folder, "normal.rank0.sqlite")},
		"no file matches":     {ranks + "[x].sqlite"},
		"contains no file":    {t.TempDir()},
		"is a JSON result of": {result},
	} {
		if out, errs, code := runIn(t, append([]string{"trace"}, args...)...); code == exitDone || out != "" ||
			!strings.Contains(errs, says) {
			t.Errorf("%v: exit %d, %q, want %q", args, code, errs, says)
		}
	}
}

// Times that are compared share a unit: within a table all of them, but for the
// statistics of single instances, which share one among themselves.
func TestTablesMixNoUnits(t *testing.T) {
	t.Chdir("../..")
	const arms = "testdata/deepseek-ep4-ranks/"
	unit := regexp.MustCompile(`(\S[^()│]*?) \((ns|µs|ms|s)\)`)
	for _, args := range [][]string{
		{"trace", arms + "normal.rank0.sqlite", arms + "normal.rank1.sqlite"},
		{"trace", "--table", "phases", loopNormal}, {"trace", "--table", "kernels", loopNormal},
		{"trace", "--table", "experts", loopNormal},
		{"trace", "--table", "cells", loopNormal}, {"trace", "--table", "collectives", loopNormal},
		{"compare", arms + "normal.rank?.sqlite", arms + "perfect.rank?.sqlite"},
		{"compare", "--table", "layers", arms + "normal.rank?.sqlite", arms + "perfect.rank?.sqlite"},
	} {
		out, stderr, code := invoke(t.Context(), args...)
		if code != exitDone {
			t.Fatalf("%v: exit %d, %s", args, code, stderr)
		}
		lines := strings.Split(out, "\n")
		for i, line := range lines {
			if !strings.HasPrefix(line, "──") {
				continue
			}
			units := map[bool]string{}
			for _, column := range unit.FindAllStringSubmatch(lines[i-1], -1) {
				name := strings.Fields(column[1])
				statistic := slices.Contains([]string{"mean", "median", "min", "max", "dev", "p90", "p99"},
					name[len(name)-1]) && strings.Contains(lines[i-1], "std dev")
				if other := units[statistic]; other != "" && other != column[2] {
					t.Errorf("%v: %s beside %s in %q", args, column[2], other, lines[i-1])
				}
				units[statistic] = column[2]
			}
		}
	}
}
