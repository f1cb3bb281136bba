package main

import (
	"fmt"
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
			fmt.Fprintf(&b, `{"perfect_router":false,"ranks":2,"tokens_per_rank":8,"tokens_per_second":%g,`+
				`"rank_max_over_mean":[1.5]}`+"\n", v)
		}
		return put(t, filepath.Join(dir, name), b.String())
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
}
