package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
)

// in reports whether a word has a placeholder of that name.
func in(words []string, name string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{"+name+"}") })
}

// checkPoints reports points that the commands do not use.
func (s Spec) checkPoints() error {
	p := s.Points
	if p == nil {
		return nil
	}
	if !in(s.Command.Normal, p.Name) && s.perLaunch() == nil {
		return fmt.Errorf("--points %s: the command has no {%[1]s}: write it where the value goes", p.Name)
	}
	return nil
}

// perLaunch are the points that need launches of their own, nil where there are none.
func (s Spec) perLaunch() []string {
	if s.Points == nil {
		return nil
	}
	words := slices.Clone(s.Command.engine())
	for _, a := range s.Arms {
		words = append(words, a.Flags...)
	}
	if !in(words, s.Points.Name) {
		return nil
	}
	return s.Points.Values
}

// perClient reports whether each launch of a server has a run of its client per point.
func (s Spec) perClient() bool {
	return s.Points != nil && s.perLaunch() == nil && in(s.Command.Normal,
		s.Points.Name)
}

// order are the points of a launch that has several, in the order they are measured.
func (s Spec) order(l Launch) []string {
	if s.Points == nil || l.Point != "" {
		return nil
	}
	return points.Drawn(s.Design.Seed, l.Pair, s.Points.Values)
}

// PointRun is what one launch measured at one of its points.
type PointRun struct {
	Value      string          `json:"value"`
	DurationNS int64           `json:"duration_ns"`
	Result     *metrics.Result `json:"result"`
}

// pointAttempts are an attempt once for each of its points, with the result at that; itself where
// it has none.
func (a Attempt) pointAttempts() []Attempt {
	var attempts []Attempt
	for _, s := range a.Segments {
		if s.Counts {
			view := a
			view.Result, view.DurationNS = s.Result, s.DurationNS
			attempts = append(attempts, view)
		}
	}
	if len(a.Points)+len(attempts) == 0 {
		return []Attempt{a}
	}
	for _, p := range a.Points {
		view := a
		view.Result, view.DurationNS = p.Result, p.DurationNS
		attempts = append(attempts, view)
	}
	return attempts
}
