package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Two builds are compared by their names, on traces that show two arms and on reports of
// one arm, and neither speaks of balance or of the other names.
func TestCompareVerbOfBuilds(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, rates ...float64) string {
		var b strings.Builder
		for _, v := range rates {
			fmt.Fprintf(&b, `{"perfect_router":false,"ranks":2,"tokens_per_rank":8,"tokens_per_second":%g,"rank_max_over_mean":[1.5]}`+"\n", v)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, args := range [][]string{{"--arm", "before"}, {"--arm", "x", "--arm", "x"}} {
		if _, errs, code := invoke(t.Context(), append([]string{"compare", "../../" + loopNormal, "../../" + loopPerfect}, args...)...); code != exitUsage ||
			!strings.Contains(errs, "want two names") {
			t.Errorf("%q: exit %d, %q", args, code, errs)
		}
	}
	v1, v2 := write("v1.jsonl", 100, 101, 100, 99, 100, 101), write("v2.jsonl", 110, 111, 110, 110, 109, 111)
	for _, k := range []struct {
		args []string
		want string
	}{
		{[]string{v1, v2}, "after is 10.0 % faster than before."},
		{[]string{v2, v1}, "after is 9.1 % slower than before."},
		{[]string{v1, v1 + "x"}, "no such file"},
		{[]string{"../../" + loopNormal, "../../" + loopPerfect},
			"Steps of after take 39.5 % less GPU time than steps of before."},
		{[]string{"../../" + loopPerfect, "../../" + loopNormal}, "more GPU time than steps of before."},
	} {
		out, errs, code := invoke(t.Context(), append([]string{"compare", "--arm", "before", "--arm", "after"}, k.args...)...)
		if !strings.Contains(out+errs, k.want) || (code == exitDone) != (errs == "") {
			t.Errorf("%q: exit %d, want %q in\n%s%s", k.args, code, k.want, out, errs)
		}
		if said := regexp.MustCompile(`\b(normal|perfect|balance|balanced|router)\b`).FindString(strings.ReplaceAll(out,
			"router    compute", "")); said != "" && errs == "" {
			t.Errorf("%q: the output speaks of %q:\n%s", k.args, said, out)
		}
	}
}

// The names of two builds stand wherever an arm does, and the files keep theirs.
func TestCompareVerbNamesBuilds(t *testing.T) {
	args := []string{"compare", "--arm", "before", "--arm", "after", "../../testdata/deepseek-ep4-ranks"}
	text, _, _ := invoke(t.Context(), append(args, "--format", "json")...)
	arms := map[string]int{}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, of := range v {
				walk(k, of)
			}
		case []any:
			for _, of := range v {
				walk(key, of)
			}
		case string:
			name, file, _ := strings.Cut(v, ": ")
			switch {
			case key == "arm" || key == "subject" || key == "subjects":
				arms[name]++
			case key == "exports":
				file = filepath.Base(v)
			}
			if file = strings.TrimSpace(file); (key == "subject" || key == "exports") && file != "" &&
				!strings.HasPrefix(file, "normal.rank") && !strings.HasPrefix(file, "perfect.rank") {
				t.Errorf("%s: the file %q, which is none", key, file)
			}
		}
	}
	var result map[string]any
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"steps", "warnings", "answer"} {
		walk(key, result[key])
	}
	for _, side := range []string{"normal", "perfect"} {
		walk("exports", result[side].(map[string]any)["exports"])
	}
	if len(arms) != 2 || arms["before"] == 0 || arms["after"] == 0 {
		t.Errorf("JSON names the arms %v", arms)
	}
}

func TestBenchVerbRefusesArmsAndPoints(t *testing.T) {
	for want, args := range map[string][]string{
		"--points concurrency: the command has no {concurrency}": {"--points", "concurrency=1,8", "--", "true"},
		`points "concurrency=1,1": 1 is named twice`: {"--points", "concurrency=1,1", "--", "true",
			"{concurrency}"},
		`value "x": want positive numbers`: {"--points", "concurrency=1,x", "--", "true",
			"{concurrency}"},
		"nothing sets the arm after apart": {"--arm", "before", "--arm", "after", "--", "true"},
		"without a treatment and without proof": {"--arm", "before", "--arm", "after", "--treatment", "vllm",
			"--", "true", "{arm}"},
		"is neither a router, VARIABLE=VALUE nor a flag": {"--arm", "balancer=greedy", "--", "true"},
		"--arm balancer is given twice": {"--arm", "balancer=A=1", "--arm", "balancer=A=2",
			"--", "true"},
	} {
		_, errs, code := invoke(t.Context(), append([]string{"bench", "--campaign", filepath.Join(t.TempDir(), "c")},
			args...)...)
		if code != exitUsage || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: exit %d, %q; want a line of usage", args, code, errs)
		}
		if !strings.Contains(errs, want) {
			t.Errorf("%q: %q, want %q", args, errs, want)
		}
	}
}
