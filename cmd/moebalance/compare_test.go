package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
)

// Two ranks of one run, as an unquoted pattern gives them, are no two arms: the answer says
// what to type.
func TestTwoRanksAreNoArms(t *testing.T) {
	const rank = "../../testdata/vllm/qwen3-normal.rank"
	out, errs, code := invoke(t.Context(), "compare", rank+"0.json.gz", rank+"1.json.gz")
	if code != exitNotComparable || errs != "moebalance: not comparable\n" ||
		!strings.Contains(out, "Next: moebalance compare NORMAL_DIR PERFECT_DIR\n") {
		t.Errorf("exit %d, answer %q, error %q", code, out, errs)
	}
}

func TestCompareVerbOnReports(t *testing.T) {
	dir := askedFiles(t)
	var r gain.Result
	ask(t, exitDone, &r, "compare", "--json", filepath.Join(dir, "normal.jsonl"), filepath.Join(dir, "perfect.jsonl"))
	if g := float64(r.Gain.Estimate); r.Kind != "bench" || r.Verdict != gain.Significant || r.Gain.N != 6 ||
		len(r.Proof) != 2 || r.Proof[0].Grade != gain.Claimed || g < 0.19 || g > 0.21 {
		t.Errorf("have %q %q, %d pairs, proof %+v, gain %g, want about 0.198", r.Kind, r.Verdict, r.Gain.N, r.Proof, g)
	}
}

// Two builds are compared by their names, on traces that show two arms and on reports of
// one arm, and neither speaks of balance or of the other names.
func TestCompareVerbOfBuilds(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, rates ...float64) string {
		var b strings.Builder
		for _, v := range rates {
			fmt.Fprintf(&b, `{"perfect_router":false,"ranks":2,"tokens_per_rank":8,"tokens_per_second":%g,`+
				`"rank_max_over_mean":[1.5]}`+"\n", v)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	v1, v2 := write("v1.jsonl", 100, 101, 100, 99, 100, 101), write("v2.jsonl", 110, 111, 110, 110, 109, 111)
	for _, k := range [][3]string{
		{v1, v2, "after is 10.0 % faster than before."},
		{v2, v1, "after is 9.1 % slower than before."},
		{"../../" + loopNormal, "../../" + loopPerfect, "Steps of after take 39.5 % less GPU time than steps of before."},
		{"../../" + loopPerfect, "../../" + loopNormal, "more GPU time than steps of before."},
	} {
		out := captured(t, []string{"compare", "--arm", "before", "--arm", "after", k[0], k[1]})
		if !strings.Contains(out, k[2]) {
			t.Errorf("%q: want %q in\n%s", k[:2], k[2], out)
		}
		if said := regexp.MustCompile(`\b(normal|perfect|balance|balanced|router)\b`).FindString(strings.ReplaceAll(out,
			"router    compute", "")); said != "" {
			t.Errorf("%q: the output speaks of %q:\n%s", k[:2], said, out)
		}
	}
	var result map[string]any
	ask(t, exitDone, &result, "compare", "--json", "--arm", "before", "--arm", "after",
		"../../testdata/deepseek-ep4-ranks")
	arms := map[string]int{}
	for _, part := range []string{"steps", "warnings", "answer"} {
		walk(result[part], func(key string, value any) {
			if subject, ok := value.(string); ok && (key == "arm" || key == "subject") {
				arm, _, _ := strings.Cut(subject, ": ")
				arms[arm]++
			}
		})
	}
	if len(arms) != 2 || arms["before"] == 0 || arms["after"] == 0 {
		t.Errorf("JSON names the arms %v", arms)
	}
}

// exportFolder is a folder with links to exports of one or both arms, and what else lies beside exports:
// notes, logs, hidden files, reports of which the export is there, and second names.
func exportFolder(t *testing.T, arms ...string) string {
	t.Helper()
	ranks, err := filepath.Abs("../../testdata/gptoss-ep4-ranks")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, arm := range arms {
		for _, name := range []string{arm + ".rank0.sqlite", arm + ".rank1.sqlite"} {
			link(filepath.Join(ranks, name), name)
		}
	}
	for _, name := range []string{"info.json", "README", "run.log", ".DS_Store", arms[0] + ".rank0.nsys-rep"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(`{"a": 1}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link(arms[0]+".rank1.sqlite", "latest.sqlite")
	return folder
}

// A folder gives what its exports give, however they lie in it, and what is skipped is said.
func TestFolders(t *testing.T) {
	const ranks = "../../testdata/gptoss-ep4-ranks/"
	one, both, split := exportFolder(t, "normal"), exportFolder(t, "normal", "perfect"), t.TempDir()
	for _, arm := range []string{"normal", "perfect"} {
		if err := os.Symlink(exportFolder(t, arm), filepath.Join(split, "run-"+arm)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ folder, says string }{
		{"trace " + one, "skipped in " + one + ": README, info.json, latest.sqlite, normal.rank0.nsys-rep, run.log\n"},
		{"compare " + both, "skipped in "}, {"compare " + split, "skipped in "},
	} {
		files := map[string]string{"trace": "normal.rank[01].sqlite", "compare": "*.rank[01].sqlite"}
		verb, folder, _ := strings.Cut(c.folder, " ")
		want := captured(t, []string{verb, ranks + files[verb]})
		if have, errs, code := invoke(t.Context(), verb, folder); code != exitDone || have != want ||
			!strings.Contains(errs, c.says) {
			t.Errorf("%s: exit %d, %s\n%s\nwant\n%s", c.folder, code, errs, have, want)
		}
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitFailed, "want ", []string{"trace", filepath.Join(one, "info.json")}},
		{exitFailed, "want ", []string{"trace", filepath.Join(one, "README")}},
		{exitUsage, "has perfect in its name", []string{"compare", one}},
		{exitNotComparable, "compare them with: moebalance compare " + both + ";", []string{"trace", both}},
	} {
		if out, errs, code := invoke(t.Context(), c.args...); code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, %q", c.args, code, errs)
		}
	}
}
