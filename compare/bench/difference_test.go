package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/testdata/require"
)

func TestWordDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		want    []string // "name: normal | perfect"
	}{
		"no {arm}": {"run --batch 8", nil},
		"the arm's own file": {"run --save r-{arm}-{launch}.json",
			[]string{"--save: r-normal-{launch}.json | r-perfect-{launch}.json"}},
		"an argument": {"run r-{arm}.json", []string{"r-perfect.json: r-normal.json | r-perfect.json"}},
	} {
		spec := Spec{Command: Command{Normal: strings.Fields(c.command)}}
		var got []string
		for _, d := range spec.wordDifferences(gain.Perfect) {
			got = append(got, fmt.Sprintf("%s: %s | %s", d.Name, d.Normal, d.Perfect))
		}
		if !slices.Equal(got, c.want) || (spec.Undeclared() == "") != (c.want == nil) {
			t.Errorf("%s: %q, want %q; undeclared %q", name, got, c.want, spec.Undeclared())
		}
	}
}

// A build or a further arm is named for what --arm gives it.
func TestArmsAreNamedForTheirDifferences(t *testing.T) {
	for arm, builds := range map[gain.Arm]gain.Builds{"more": {}, gain.Perfect: {"before", "more"}} {
		s := Spec{Command: Command{Normal: []string{"run"}}, Builds: builds}
		s.Arms = []ArmSpec{require.Value(ParseArm("more=SKEW=1 --eplb"))}
		given := func(a gain.Arm) Attempt { return Attempt{Environment: s.arm(a).Env} }
		got := ""
		for _, d := range s.differences(arm, given(gain.Normal), given(arm)) {
			got += fmt.Sprintf("%s: %s | %s, %t; ", d.Name, d.Normal, d.Perfect, d.Declared)
		}
		if got != "SKEW: not set | 1, true; --eplb: no such word | --eplb, true; " {
			t.Errorf("%s: %s", arm, got)
		}
	}
}
