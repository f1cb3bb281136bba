package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/shown"
)

// differences compares what was recorded of a launch of the normal arm and one of another,
// and what all launches of both arms show of the variables that the command sets itself.
func (c *Campaign) differences(arm gain.Arm, normal, perfect Attempt) []gain.Difference {
	found := c.Spec.environmentDifferences(arm, normal, perfect)
	found = append(found, c.ownDifferences(arm, found)...)
	found = append(found, c.Spec.wordDifferences(arm)...)
	for i, f := range normal.Files {
		if i < len(perfect.Files) && perfect.Files[i].SHA256 != f.SHA256 {
			found = append(found, gain.Difference{Kind: "file", Name: f.Path, Normal: f.SHA256,
				Perfect: perfect.Files[i].SHA256})
		}
	}
	if a, b := identities(normal.GPUs), identities(perfect.GPUs); a != b && a != "" && b != "" {
		found = append(found, gain.Difference{Kind: "gpu", Name: "identity", Normal: a, Perfect: b})
	}
	for i := range found {
		found[i].Declared = found[i].Declared || slices.Contains(c.Spec.Accepted, found[i].Name)
		if arm != gain.Perfect {
			found[i].Arm = arm
		}
	}
	return found
}

// environmentDifferences are the variables that the arms were given otherwise.
func (s Spec) environmentDifferences(arm gain.Arm, normal, perfect Attempt) []gain.Difference {
	var found []gain.Difference
	for _, name := range differing(normal.Environment, perfect.Environment) {
		a, inNormal := normal.Environment[name]
		b, inPerfect := perfect.Environment[name]
		found = append(found, gain.Difference{Kind: "environment", Name: name, Normal: setTo(a, inNormal),
			Perfect: setTo(b, inPerfect), Declared: s.declares(name, arm)})
	}
	return found
}

// differing are the variables that two environments do not have alike, sorted.
func differing(a, b map[string]string) (names []string) {
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

// ownDifferences are the variables that the command sets itself, to one value in every
// launch of an arm and to another in every launch of the other, beside those known. One
// that changes from launch to launch of an arm says nothing about the arms: a free port, a
// folder for one launch, or a script that had come less far when it was looked at.
func (c *Campaign) ownDifferences(arm gain.Arm, known []gain.Difference) []gain.Difference {
	normal, other := c.ownVariables(gain.Normal), c.ownVariables(arm)
	if len(normal) < steadyLaunches || len(other) < steadyLaunches {
		return nil
	}
	var found []gain.Difference
	for _, name := range differing(normal[0], other[0]) {
		a, inNormal := normal[0][name]
		b, inOther := other[0][name]
		given := slices.ContainsFunc(known, func(d gain.Difference) bool { return d.Name == name })
		if !given && steady(normal, name) && steady(other, name) {
			found = append(found, gain.Difference{Kind: "environment", Name: name, Normal: changedTo(a, inNormal),
				Perfect: changedTo(b, inOther)})
		}
	}
	return found
}

// ownVariables are those of every finished launch of an arm whose process was seen. A
// profiler sets some of its own.
func (c *Campaign) ownVariables(arm gain.Arm) (own []map[string]string) {
	for _, l := range c.Launches {
		if a, ok := l.Done(); ok && l.Arm == arm && l.Kind != Profiled && a.OwnVariables != nil {
			own = append(own, a.OwnVariables)
		}
	}
	return own
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

// changedTo describes a variable that the command changed itself, without the value
// that only a hash is known of.
func changedTo(value string, changed bool) string {
	switch {
	case !changed:
		return "as given"
	case strings.HasPrefix(value, launch.Hashed):
		return "changed by the command (value not recorded)"
	}
	return value
}

// wordDifferences are the words in which the commands of the normal arm and another differ,
// those of --perfect-command, of {arm} and the flags of --arm; other placeholders stand as
// typed. A word is called by its option: --batch for "--batch=8" and for the 8 of "--batch 8". It is declared
// if Accepted holds that name or one of the words; what sets builds and further arms apart
// is declared by naming them.
func (s Spec) wordDifferences(arm gain.Arm) []gain.Difference {
	fill := func(words []string, arm gain.Arm) []string {
		filled := slices.Clone(words)
		for i, w := range filled {
			filled[i] = strings.ReplaceAll(w, "{arm}", string(s.Builds.Called(arm)))
		}
		return filled
	}
	commands := func(arm gain.Arm) [2][]string {
		server, client := fill(s.Command.Server, arm), fill(s.Command.Of(arm), arm)
		if flags := fill(s.arm(arm).Flags, arm); len(server) > 0 {
			server = append(server, flags...)
		} else {
			client = append(client, flags...)
		}
		return [2][]string{server, client}
	}
	accepted := slices.Concat(fill(s.Accepted, gain.Normal), fill(s.Accepted, arm))
	normal, other := commands(gain.Normal), commands(arm)
	var found []gain.Difference
	for i := range normal {
		for _, d := range wordDiff(normal[i], other[i]) {
			d.Declared = s.declaredByName(arm) || slices.ContainsFunc([]string{d.Name, d.Normal, d.Perfect},
				func(w string) bool { return slices.Contains(accepted, w) })
			found = append(found, d)
		}
	}
	return found
}

// noWord stands for the word that one side of a difference lacks.
const noWord = "no such word"

// wordDiff aligns two commands by their longest common subsequence and lists what is
// not in it: the n-th words of both sides between two common ones make a difference.
func wordDiff(a, b []string) []gain.Difference {
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

// identities names GPUs by what must not change.
func identities(gpus []launch.GPU) string {
	var ids []string
	for _, g := range gpus {
		ids = append(ids, g.UUID+" "+g.Driver)
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}
