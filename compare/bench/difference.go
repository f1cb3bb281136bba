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
// that have another value, or none, in the other arm, and the words of their commands.
func (s Spec) differences(arm gain.Arm, normal, other Attempt) (found []gain.Difference) {
	for _, name := range slices.Sorted(maps.Keys(merged(normal.Environment, other.Environment))) {
		d := gain.Difference{Kind: "environment", Name: name, Normal: "not set", Perfect: "not set",
			Declared: s.declares(name, arm)}
		if value, set := normal.Environment[name]; set {
			d.Normal = value
		}
		if value, set := other.Environment[name]; set {
			d.Perfect = value
		}
		if d.Normal != d.Perfect {
			found = append(found, d)
		}
	}
	found = append(found, s.wordDifferences(arm)...)
	for i := range found {
		found[i].Declared = found[i].Declared || slices.Contains(s.Accepted, found[i].Name)
		if arm != gain.Perfect {
			found[i].Arm = arm
		}
	}
	return found
}

// noWord stands for the word that one side of a difference lacks.
const noWord = "no such word"

// wordDifferences are the words in which the commands of the normal arm and another differ: words with {arm},
// and the flags of --arm, which follow the engine's words; other placeholders stand as typed. A word is
// called by its option: --batch for "--batch=8" and for the 8 of "--batch 8". It is declared
// if Accepted holds that name or one of the words; what sets builds and further arms apart
// is declared by naming them.
func (s Spec) wordDifferences(arm gain.Arm) (found []gain.Difference) {
	fill := func(words []string, arm gain.Arm) []string {
		return placeholders{strings.NewReplacer("{arm}", string(s.Builds.Called(arm)))}.fill(words)
	}
	accepted := slices.Concat(fill(s.Accepted, gain.Normal), fill(s.Accepted, arm))
	if arm == gain.Perfect {
		accepted = append(accepted, s.Treatment.Flags...)
	}
	differ := func(normal, other []string) {
		normal, other = shown.Mask(normal), shown.Mask(other)
		for i := range max(len(normal), len(other)) {
			d := gain.Difference{Kind: "argument", Normal: noWord, Perfect: noWord}
			if i < len(normal) {
				d.Normal, d.Name = normal[i], optionOf(normal, i)
			}
			if i < len(other) {
				d.Perfect, d.Name = other[i], optionOf(other, i)
			}
			if d.Declared = s.declaredByName(arm) || slices.ContainsFunc([]string{d.Name, d.Normal, d.Perfect},
				func(w string) bool { return slices.Contains(accepted, w) }); d.Normal != d.Perfect {
				found = append(found, d)
			}
		}
	}
	for _, words := range [][]string{s.Command.Server, s.Command.Normal} {
		differ(fill(words, gain.Normal), fill(words, arm))
	}
	differ(fill(s.arm(gain.Normal).Flags, gain.Normal), fill(s.arm(arm).Flags, arm))
	return found
}

// optionOf is the option that a word is or belongs to; the word itself where it is
// neither.
func optionOf(words []string, at int) string {
	option, _, _ := strings.Cut(words[at], "=")
	switch {
	case strings.HasPrefix(option, "-"):
		return option
	case at > 0 && strings.HasPrefix(words[at-1], "-") && !strings.Contains(words[at-1], "="):
		return words[at-1]
	}
	return words[at]
}

// Undeclared describes the words in which the commands differ without being accepted;
// empty where there are none.
func (s Spec) Undeclared() string {
	var texts []string
	for _, d := range s.wordDifferences(gain.Perfect) {
		if !d.Declared {
			texts = append(texts, fmt.Sprintf("%s: normal %q, perfect %q", d.Name, d.Normal, d.Perfect))
		}
	}
	return strings.Join(texts, "; ")
}
