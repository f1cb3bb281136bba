package bench

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
)

// Evidence is what the finished launches show about the treatment and about
// everything else that may have differed between the arms. Traces of the profiled
// pair stand in for ranks of which the launches themselves prove nothing.
func (c *Campaign) Evidence(traces TraceProof) Evidence {
	e := Evidence{Checks: c.checks()}
	for _, p := range c.rankProofs() {
		e.Proofs = append(e.Proofs, p.proof(traces))
	}
	seen := make(map[Difference]bool)
	for _, pair := range c.Pairs(Timed) {
		normal, perfect := armsOf(pair)
		e.Compared = true
		for _, d := range c.differences(normal, perfect) {
			if !seen[d] {
				seen[d] = true
				e.Differences = append(e.Differences, d)
			}
		}
	}
	return e
}

// armsOf are the finished attempts of a timed pair by arm.
func armsOf(pair [2]Launch) (normal, perfect Attempt) {
	a, _ := pair[0].Done()
	b, _ := pair[1].Done()
	if pair[0].Arm == Perfect {
		return b, a
	}
	return a, b
}

// differences compares what was recorded of the two launches of a pair.
func (c *Campaign) differences(normal, perfect Attempt) []Difference {
	var found []Difference
	for _, name := range slices.Sorted(maps.Keys(either(normal.Environment, perfect.Environment))) {
		a, inNormal := normal.Environment[name]
		b, inPerfect := perfect.Environment[name]
		if a == b && inNormal == inPerfect {
			continue
		}
		_, declared := c.Spec.Treatment.Perfect[name]
		found = append(found, Difference{Kind: "environment", Name: name, Normal: setTo(a, inNormal), Perfect: setTo(b, inPerfect), Declared: declared})
	}
	if d, differ := c.arguments(normal, perfect); differ {
		found = append(found, d)
	}
	for i, f := range normal.Files {
		if i < len(perfect.Files) && perfect.Files[i].SHA256 != f.SHA256 {
			found = append(found, Difference{Kind: "file", Name: f.Path, Normal: f.SHA256, Perfect: perfect.Files[i].SHA256})
		}
	}
	if a, b := identities(normal.GPUs), identities(perfect.GPUs); a != b && a != "" && b != "" {
		found = append(found, Difference{Kind: "gpu", Name: "identity", Normal: a, Perfect: b})
	}
	return found
}

func setTo(value string, set bool) string {
	if !set {
		return "not set"
	}
	return value
}

// arguments compares the words of the arms, as the spec gives them. The words
// themselves differ anyway in placeholders and in what launchers pass on.
func (c *Campaign) arguments(normal, perfect Attempt) (Difference, bool) {
	a, b := c.Spec.Command.Of(Normal), c.Spec.Command.Of(Perfect)
	if !slices.Equal(a, b) {
		return Difference{Kind: "argument", Name: "command", Normal: launch.Quote(a), Perfect: launch.Quote(b), Declared: true}, true
	}
	words := slices.Concat(c.Spec.Command.Server, a)
	if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{arm}") }) {
		return Difference{Kind: "argument", Name: "{arm}", Normal: launch.Quote(normal.Arguments), Perfect: launch.Quote(perfect.Arguments), Declared: true}, true
	}
	return Difference{}, false
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

// either has the keys of both maps.
func either(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = make(map[string]string)
	}
	maps.Copy(all, b)
	return all
}

// Exports are the profiler's exports of an arm's profiled launch, sorted.
func (c *Campaign) Exports(arm Arm) []string {
	for _, l := range c.Launches {
		if a, ok := l.Done(); ok && l.Kind == Profiled && l.Arm == arm {
			paths, _ := filepath.Glob(filepath.Join(c.Folder, a.Folder, outName, "*.sqlite"))
			return paths
		}
	}
	return nil
}
