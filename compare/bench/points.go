package bench

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/points"
)

// in reports whether a word has a placeholder of that name.
func in(words []string, name string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{"+name+"}") })
}

// perLaunch reports whether each point needs launches of its own.
func (s Spec) perLaunch() bool {
	words := slices.Clone(s.Command.engine())
	for _, a := range s.Arms {
		words = append(words, a.Flags...)
	}
	return s.Points != nil && in(words, s.Points.Name)
}

// perClient reports whether each launch of a server has a run of its client per point.
func (s Spec) perClient() bool {
	return s.Points != nil && !s.perLaunch() && in(s.Command.Normal, s.Points.Name)
}

// order are the points of the runs of the measured command in a launch of one arm, as they are measured: one run,
// empty where there are no points, or a server's client at each.
func (s Spec) order(l Launch) []string {
	if s.perClient() {
		return points.Drawn(s.Design.Seed, l.Pair, s.Points.Values)
	}
	return []string{l.Point}
}
