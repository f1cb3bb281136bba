package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/difference"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
)

// differences compares what was recorded of a launch of the normal arm and one of another,
// and what all launches of both arms show of the variables that the command sets itself.
func (c *Campaign) differences(arm gain.Arm, normal, perfect Attempt) []gain.Difference {
	found := append(c.environmentDifferences(arm, normal, perfect), c.Spec.wordDifferences(arm)...)
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

// environmentDifferences are the variables that the arms were given otherwise, and those that the command
// sets itself otherwise.
func (c *Campaign) environmentDifferences(arm gain.Arm, normal, perfect Attempt) (found []gain.Difference) {
	found = difference.Given(normal.Environment, perfect.Environment)
	for i := range found {
		found[i].Declared = c.Spec.declares(found[i].Name, arm)
	}
	own := difference.Own(c.ownVariables(gain.Normal), c.ownVariables(arm))
	return append(found, slices.DeleteFunc(own, func(d gain.Difference) bool {
		return slices.ContainsFunc(found, func(given gain.Difference) bool { return given.Name == d.Name })
	})...)
}

// ownVariables are those of every finished launch of an arm whose process was seen.
func (c *Campaign) ownVariables(arm gain.Arm) (own []map[string]string) {
	for _, l := range c.Launches {
		if a, ok := l.Done(); ok && l.Arm == arm && a.OwnVariables != nil {
			own = append(own, a.OwnVariables)
		}
	}
	return own
}

// wordDifferences are the words in which the commands of the normal arm and another differ,
// those of {arm} and the flags of --arm; other placeholders stand as
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
		server, client := fill(s.Command.Server, arm), fill(s.Command.Normal, arm)
		if flags := fill(s.arm(arm).Flags, arm); len(server) > 0 {
			server = append(server, flags...)
		} else {
			client = append(client, flags...)
		}
		return [2][]string{server, client}
	}
	accepted := slices.Concat(fill(s.Accepted, gain.Normal), fill(s.Accepted, arm))
	if arm == gain.Perfect {
		accepted = append(accepted, s.Treatment.Flags...)
	}
	normal, other := commands(gain.Normal), commands(arm)
	var found []gain.Difference
	for i := range normal {
		for _, d := range difference.Words(normal[i], other[i]) {
			d.Declared = s.declaredByName(arm) || slices.ContainsFunc([]string{d.Name, d.Normal, d.Perfect},
				func(w string) bool { return slices.Contains(accepted, w) })
			found = append(found, d)
		}
	}
	return found
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
