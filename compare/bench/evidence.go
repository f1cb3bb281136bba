package bench

import (
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
)

// proofs say how each rank was routed. Traces of the profiled pair stand in for ranks of
// which the launches themselves prove nothing.
func (c *Campaign) proofs(traces gain.TraceProof) (proofs []gain.Proof) {
	if !c.Spec.Builds.Named() {
		for _, p := range c.rankProofs() {
			proofs = append(proofs, p.proof(traces))
		}
	}
	return proofs
}

// allDifferences are those between the arms in the finished pairs, each once; compared says
// that there are such pairs.
func (c *Campaign) allDifferences() (found []gain.Difference, compared bool) {
	for _, arm := range c.Spec.arms()[1:] {
		for _, pair := range c.versus(Timed, arm) {
			normal, _ := pair[0].Done()
			other, _ := pair[1].Done()
			if pair[0].Arm != gain.Normal {
				normal, other = other, normal
			}
			compared = true
			for _, d := range c.differences(arm, normal, other) {
				if !slices.Contains(found, d) {
					found = append(found, d)
				}
			}
		}
	}
	return found, compared
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
