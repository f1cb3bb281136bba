package main

import (
	"fmt"
	"os"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// reportReader turns benchmark reports into the launches of a campaign.
type reportReader struct {
	metric string // empty: the first report's primary one
	custom []metrics.Custom
	trust  bool
	into   *gain.Campaign
	chosen *metrics.Metric // that of the first report, which all others must match
	count  map[gain.Arm]int
	steps  map[gain.Arm][]metrics.Step // of all launches of an arm
	notes  []string
}

// read adds the launches of one arm: those of each file in turn.
func (r *reportReader) read(arm gain.Arm, paths []string) error {
	proof := gain.Proof{Arm: arm, Rank: gain.AllRanks, Proved: true, Evidence: "every report says so"}
	if r.trust {
		proof.Evidence = "taken on trust"
	}
	for _, path := range paths {
		runs, err := readReports(path, r.custom)
		if err != nil {
			return fmt.Errorf("%s side: %s: %w", arm, path, err)
		}
		for i, run := range runs {
			where := path
			if len(runs) > 1 {
				where = fmt.Sprintf("%s, launch %d", path, i+1)
			}
			if err := r.add(arm, run); err != nil {
				return fmt.Errorf("%s side: %s: %w", arm, where, err)
			}
			for _, w := range run.Warnings {
				r.notes = append(r.notes, where+": "+w)
			}
			if proof.Proved && !r.trust {
				proof.Proved, proof.Evidence = claims(run, arm, where)
			}
		}
	}
	r.into.Proof = append(r.into.Proof, proof)
	return nil
}

// readReports reads one report, or as many as the file has lines for.
func readReports(path string, custom []metrics.Custom) ([]metrics.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	one, err := metrics.Parse(f, custom)
	if err == nil {
		return []metrics.Result{one}, nil
	}
	if _, seekErr := f.Seek(0, 0); seekErr != nil {
		return nil, err // not a file that can be read twice
	}
	if runs, runsErr := metrics.ParseRuns(f, custom); runsErr == nil && len(runs) > 1 {
		return runs, nil
	}
	return nil, err
}

// claims says whether a report proves its arm.
func claims(run metrics.Result, arm gain.Arm, where string) (bool, string) {
	switch {
	case !run.Proof.Claimed:
		return false, where + " does not say how it was routed; --trust-arms takes it as the " + string(arm) + " arm"
	case run.Proof.Perfect != (arm == gain.Perfect):
		said := gain.Normal
		if run.Proof.Perfect {
			said = gain.Perfect
		}
		return false, fmt.Sprintf("%s says it is a launch of the %s arm", where, said)
	}
	return true, "every report says so"
}

func (r *reportReader) add(arm gain.Arm, run metrics.Result) error {
	name := r.metric
	if name == "" {
		if name = run.Primary; r.chosen != nil {
			name = r.chosen.Name
		}
	}
	m, ok := run.Metric(name)
	if !ok {
		return fmt.Errorf("no metric %q in this %s report: want one of %s", name, run.Format, run.Names())
	}
	if r.chosen == nil {
		r.chosen, r.count, r.steps = &m, map[gain.Arm]int{}, map[gain.Arm][]metrics.Step{}
		r.into.Metric = bench.MetricOf(m)
	} else if err := r.chosen.Comparable(m); err != nil {
		return withCode(exitNotComparable, err)
	}
	l := bench.LaunchOf(run, m)
	l.Pair, l.Arm, l.Position = r.count[arm], arm, gain.UnknownPosition
	r.into.Launches = append(r.into.Launches, l)
	r.count[arm]++
	r.steps[arm] = append(r.steps[arm], run.Steps...)
	return nil
}

// balanced wants as many launches on both sides, and says what a pair means.
func (r *reportReader) balanced() error {
	n, p := r.count[gain.Normal], r.count[gain.Perfect]
	if n != p {
		return usagef("the normal side holds %s and the perfect side %d: want as many, the n-th of both make a pair", quantity.Count(n, "launch"), p)
	}
	r.notes = append(r.notes, "pairs are the n-th launches of both sides; in which order they ran is not in the reports, so nothing is said about drift")
	return nil
}

// matchSteps compares the steps of both arms at equal batch shape; nil where
// the reports have no steps whose shape is known.
func matchSteps(normal, perfect []metrics.Step) *metrics.Match {
	m := metrics.MatchSteps(normal, perfect)
	if len(m.Strata) == 0 {
		return nil
	}
	return &m
}
