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
	for name, k := range map[string]struct {
		spec   string
		builds gain.Builds
		arm    gain.Arm
		want   []string // "name: normal | other", "+" in front where declared
	}{
		"of a further arm": {spec: "more=SKEW=1 --eplb", arm: "more", want: []string{"+SKEW: not set | 1",
			"+--eplb: no such word | --eplb"}},
		"of a build by name": {spec: "after=SKEW=1 --eplb", builds: gain.Builds{"before", "after"}, arm: gain.Perfect,
			want: []string{"+SKEW: not set | 1", "+--eplb: no such word | --eplb"}},
	} {
		a := require.Value(ParseArm(k.spec))
		s := Spec{Command: Command{Normal: []string{"run"}}, Builds: k.builds, Arms: []ArmSpec{a}}
		given := func(a gain.Arm) Attempt { return Attempt{Environment: s.arm(a).Env} }
		var got []string
		for _, d := range s.differences(k.arm, given(gain.Normal), given(k.arm)) {
			text := fmt.Sprintf("%s: %s | %s", d.Name, d.Normal, d.Perfect)
			if d.Declared {
				text = "+" + text
			}
			got = append(got, text)
		}
		if !slices.Equal(got, k.want) {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
	}
}
