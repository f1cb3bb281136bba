package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
)

func TestWordDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		want    []string // "name: normal | perfect", "+" in front where declared
	}{
		"no {arm}": {"run --batch 8", nil},
		"the arm's own file": {"run --save r-{arm}-{launch}.json",
			[]string{"--save: r-normal-{launch}.json | r-perfect-{launch}.json"}},
		"an argument": {"run r-{arm}.json", []string{"r-perfect.json: r-normal.json | r-perfect.json"}},
	} {
		spec := Spec{Command: Command{Normal: strings.Fields(c.command)}}
		var got []string
		undeclared := 0
		for _, d := range spec.wordDifferences(gain.Perfect) {
			text := fmt.Sprintf("%s: %s | %s", d.Name, d.Normal, d.Perfect)
			if d.Declared {
				text = "+" + text
			} else {
				undeclared++
			}
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if (spec.Undeclared() == "") != (undeclared == 0) {
			t.Errorf("%s: undeclared %q", name, spec.Undeclared())
		}
	}
}

// A build or a further arm is named for what --arm gives it.
func TestArmsAreNamedForTheirDifferences(t *testing.T) {
	for name, k := range map[string]struct {
		arms   []string
		builds gain.Builds
		arm    gain.Arm
		want   []string // "name: normal | other", "+" in front where declared
	}{
		"of a further arm": {arms: []string{"more=SKEW=1 --eplb"}, arm: "more", want: []string{"+SKEW: not set | 1",
			"+--eplb: no such word | --eplb"}},
		"of a build by name": {arms: []string{"after=SKEW=1 --eplb"}, builds: gain.Builds{"before", "after"},
			want: []string{"+SKEW: not set | 1", "+--eplb: no such word | --eplb"}},
	} {
		s := Spec{Command: Command{Normal: []string{"run"}}, Builds: k.builds}
		for _, text := range k.arms {
			a, err := ParseArm(text)
			if err != nil {
				t.Fatal(err)
			}
			s.Arms = append(s.Arms, a)
		}
		arm := k.arm
		if arm == "" {
			arm = gain.Perfect
		}
		given := func(a gain.Arm) Attempt { return Attempt{Environment: s.arm(a).Env} }
		var got []string
		for _, d := range s.differences(arm, given(gain.Normal), given(arm)) {
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
