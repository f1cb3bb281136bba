// Package difference lists in what the commands and environments of two arms differ. Whether they may
// is for its caller.
package difference

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/shown"
)

// Given are the variables that two launches were given otherwise.
func Given(normal, other map[string]string) (found []gain.Difference) {
	for _, name := range Variables(normal, other) {
		a, inNormal := normal[name]
		b, inOther := other[name]
		found = append(found, gain.Difference{Kind: "environment", Name: name, Normal: setTo(a, inNormal),
			Perfect: setTo(b, inOther)})
	}
	return found
}

// Variables are those that two environments do not have alike, sorted.
func Variables(a, b map[string]string) (names []string) {
	for name, value := range a {
		if other, ok := b[name]; !ok || other != value {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// steadyLaunches is how many launches of an arm must agree on a variable that the command
// sets itself.
const steadyLaunches = 3

// Own are the variables that the command sets itself, to one value in every
// launch of an arm and to another in every launch of the other. One
// that changes from launch to launch of an arm says nothing about the arms: a free port, a
// folder for one launch, or a script that had come less far when it was looked at.
func Own(normal, other []map[string]string) (found []gain.Difference) {
	if len(normal) < steadyLaunches || len(other) < steadyLaunches {
		return nil
	}
	for _, name := range Variables(normal[0], other[0]) {
		a, inNormal := normal[0][name]
		b, inOther := other[0][name]
		if steady(normal, name) && steady(other, name) {
			found = append(found, gain.Difference{Kind: "environment", Name: name, Normal: Changed(a, inNormal),
				Perfect: Changed(b, inOther)})
		}
	}
	return found
}

// steady reports whether a variable is the same in all launches.
func steady(launches []map[string]string, name string) bool {
	first, set := launches[0][name]
	return !slices.ContainsFunc(launches, func(own map[string]string) bool {
		value, is := own[name]
		return value != first || is != set
	})
}

func setTo(value string, set bool) string {
	if !set {
		return "not set"
	}
	return value
}

// Changed describes a variable that the command changed itself, without the value
// that only a hash is known of.
func Changed(value string, changed bool) string {
	switch {
	case !changed:
		return "as given"
	case strings.HasPrefix(value, launch.Hashed):
		return "changed by the command (value not recorded)"
	}
	return value
}

// noWord stands for the word that one side of a difference lacks.
const noWord = "no such word"

// Words aligns two commands by their longest common subsequence and lists what is
// not in it: the n-th words of both sides between two common ones make a difference.
func Words(a, b []string) []gain.Difference {
	common := make([][]int, len(a)+1) // common[i][j] is the length for a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = 1 + common[i+1][j+1]
			}
		}
	}
	var found []gain.Difference
	var onlyA, onlyB []int // not common, since the last common word
	shownA, shownB := shown.Mask(a), shown.Mask(b)
	flush := func() {
		for n := range max(len(onlyA), len(onlyB)) {
			d := gain.Difference{Kind: "argument", Normal: noWord, Perfect: noWord}
			if n < len(onlyA) {
				d.Normal, d.Name = shownA[onlyA[n]], optionOf(shownA, onlyA[n])
			}
			if n < len(onlyB) {
				d.Perfect, d.Name = shownB[onlyB[n]], optionOf(shownB, onlyB[n])
			}
			found = append(found, d)
		}
		onlyA, onlyB = nil, nil
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			flush()
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			onlyA, i = append(onlyA, i), i+1
		default:
			onlyB, j = append(onlyB, j), j+1
		}
	}
	flush()
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
