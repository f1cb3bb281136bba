package bench

import (
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
)

// Iterations is what the iteration logs of the timed launches show.
type Iterations struct {
	// Matched compares the steps of equal batch shape of both arms.
	Matched metrics.Match `json:"matched_steps"`
}

// Iterations reads the iteration logs of the timed launches again, from what they printed
// or from the file that the spec names, one at a time; nil where there are none. A log that
// cannot be read any more is left out.
func (c *Campaign) Iterations() *Iterations {
	r := runner{Campaign: c}
	var matcher metrics.Matcher
	seen := [2]bool{}
	for _, l := range c.Launches {
		a, ok := l.Done()
		arm := slices.Index(gain.Arms[:], l.Arm)
		if !ok || l.Kind != Timed || a.IterationRows == 0 || arm < 0 {
			continue
		}
		steps := r.iterationLog(l, a)
		if len(steps) == 0 {
			continue
		}
		matcher.Add(arm, steps)
		seen[arm] = true
	}
	if !seen[0] || !seen[1] {
		return nil
	}
	return &Iterations{matcher.Match()}
}

// iterationLog are the steps of a launch: those of the file that the spec names, else of
// what the command, its server or the report's file hold.
func (r *runner) iterationLog(l Launch, a Attempt) []metrics.Step {
	folder := filepath.Join(r.Folder, a.Folder)
	var paths []string
	switch {
	case r.Spec.IterationLog != "":
		paths = append(paths, r.fill(l, folder, r.Spec.IterationLog, l.Point))
	default:
		for _, name := range launch.Logs {
			paths = append(paths, filepath.Join(folder, name))
		}
		if r.Spec.Output != "" {
			paths = append(paths, r.fill(l, folder, r.Spec.Output, l.Point))
		}
	}
	for _, path := range paths {
		if result, err := parseFile(path, nil); err == nil && result.HasShapes() {
			return result.Steps
		}
	}
	return nil
}
