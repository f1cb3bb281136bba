package bench

import (
	"maps"
	"path/filepath"

	"github.com/moebalance/moebalance/compare/gain"
)

// Evidence is what the finished launches show about the treatment and about
// everything else that may have differed between the arms. Traces of the profiled
// pair stand in for ranks of which the launches themselves prove nothing.
func (c *Campaign) Evidence(traces gain.TraceProof) Evidence {
	e := Evidence{Checks: c.checks()}
	if !c.Spec.Builds.Named() {
		for _, p := range c.rankProofs() {
			e.Proofs = append(e.Proofs, p.proof(traces))
		}
	}
	seen := make(map[gain.Difference]bool)
	for _, arm := range c.Spec.arms()[1:] {
		for _, pair := range c.versus(Timed, arm) {
			normal, other := armsOf(pair)
			e.Compared = true
			for _, d := range c.differences(arm, normal, other) {
				if !seen[d] {
					seen[d] = true
					e.Differences = append(e.Differences, d)
				}
			}
		}
	}
	return e
}

// armsOf are the finished attempts of a timed pair, the normal one first.
func armsOf(pair [2]Launch) (normal, perfect Attempt) {
	a, _ := pair[0].Done()
	b, _ := pair[1].Done()
	if pair[0].Arm != gain.Normal {
		return b, a
	}
	return a, b
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
func (c *Campaign) Exports(arm gain.Arm) []string {
	for _, l := range c.Launches {
		if a, ok := l.Done(); ok && l.Kind == Profiled && l.Arm == arm {
			paths, _ := filepath.Glob(filepath.Join(c.Folder, a.Folder, outName, "*.sqlite"))
			return paths
		}
	}
	return nil
}
