package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/shown"
)

// differences compares the records of two launches, one under the normal arm and one under another: the variables
// that have another value, or none, in the other arm, and the words of their commands. A variable is declared that is
// the treatment, or that an arm is named for.
func (s Spec) differences(arm gain.Arm, normal, other Attempt) (found []gain.Difference) {
	for _, name := range slices.Sorted(maps.Keys(merged(normal.Environment, other.Environment))) {
		unset := map[string]string{name: "not set"}
		d := gain.Difference{Kind: "environment", Name: name, Normal: merged(unset, normal.Environment)[name],
			Perfect: merged(unset, other.Environment)[name]}
		_, treatment := s.Treatment.Perfect[name]
		_, own := merged(s.arm(gain.Normal).Env, s.arm(arm).Env)[name]
		if d.Declared = treatment && arm == gain.Perfect || own && s.declaredByName(arm); d.Normal != d.Perfect {
			found = append(found, d)
		}
	}
	found = append(found, s.wordDifferences(arm)...)
	for i := range found {
		if arm != gain.Perfect {
			found[i].Arm = arm
		}
	}
	return found
}

// wordDifferences are the words in which the commands of the normal arm and another differ: words with {arm},
// and the flags of --arm, which follow the engine's words; other placeholders stand as typed. A word is
// called by its option: --batch for "--batch=8" and for the 8 of "--batch 8". The switch of the perfect arm is
// declared, and what sets builds and further arms apart, by naming them.
func (s Spec) wordDifferences(arm gain.Arm) (found []gain.Difference) {
	words := func(a gain.Arm) []string {
		p := placeholders{strings.NewReplacer("{arm}", string(s.Builds.Called(a)))}
		return shown.Mask(p.fill(slices.Concat(s.Command.Server, []string{""}, s.Command.Normal, s.arm(a).Flags)))
	}
	normal, other := words(gain.Normal), words(arm)
	for i := range max(len(normal), len(other)) {
		d := gain.Difference{Kind: "argument", Normal: "no such word", Perfect: "no such word"}
		if i < len(normal) {
			d.Normal, d.Name = normal[i], optionOf(normal, i)
		}
		if i < len(other) {
			d.Perfect, d.Name = other[i], optionOf(other, i)
		}
		d.Declared = s.declaredByName(arm) || slices.Contains(s.Treatment.Flags, d.Perfect)
		if d.Normal != d.Perfect {
			found = append(found, d)
		}
	}
	return found
}

// optionOf is the option that a word is or belongs to; the word itself where it is
// neither.
func optionOf(words []string, at int) string {
	option, _, _ := strings.Cut(words[at], "=")
	if strings.HasPrefix(option, "-") {
		return option
	}
	if at > 0 && strings.HasPrefix(words[at-1], "-") && !strings.Contains(words[at-1], "=") {
		return words[at-1]
	}
	return words[at]
}

// Undeclared describes the words in which the commands differ beside the switch; empty where there are none.
func (s Spec) Undeclared() string {
	var texts []string
	for _, d := range s.wordDifferences(gain.Perfect) {
		if !d.Declared {
			texts = append(texts, fmt.Sprintf("%s: normal %q, perfect %q", d.Name, d.Normal, d.Perfect))
		}
	}
	return strings.Join(texts, "; ")
}
