package render

import (
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// 384 experts on 5 ranks are at every floor of a table that never becomes level.
func TestProved(t *testing.T) {
	layout, err := router.Contiguous(384, 5)
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Prove(plan.Problem{Shape: router.Shape{Experts: 384, TopK: 8, Groups: 1, TopKGroups: 1}, Layout: layout,
		Mode: router.DEP, Tokens: []int{1, 1, 1, 1, 1}})
	if p.Optimal() || p.Level || p.Rank.Tokens+p.Copy.Tokens+p.Active.Tokens != 0 {
		t.Fatalf("%+v", p)
	}
	missed, invalid := p, p
	missed.Copy, invalid.Valid = plan.Misses{Tokens: 3, Worst: 2}, false
	for want, p := range map[string]plan.Proof{
		"1 to 4096":              p,
		"all but 3 of 1 to 4096": missed,
		"invalid":                invalid,
	} {
		if have := proved(&p); have != want {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}
