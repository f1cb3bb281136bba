package source

import (
	"fmt"
	"maps"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// ReportOptions say how benchmark reports are read and judged.
type ReportOptions struct {
	Metric    string // name of the metric compared; empty: the first report's primary one
	Custom    []metrics.Custom
	Trust     bool // take the sides as the arms they are given as
	Builds    gain.Builds
	Threshold float64
}

// ReportSet is the launches that two sets of benchmark reports hold.
type ReportSet struct {
	Campaign gain.Recorded
	Run      gain.Run
	Notes    []string
}

// reported is a launch as a report has it.
type reported struct {
	metrics.Result
	name  string               // of the file, and which of several launches in it
	lines []evidence.ProofLine // that ranks printed
}

// ReadReports reads benchmark reports as a campaign. The n-th launches of both
// sides make a pair.
func ReadReports(sides [2]Side, o ReportOptions) (set ReportSet, err error) {
	var launches [2][]reported
	printed := true // by ranks, in every report of the perfect side
	for i, side := range sides {
		for _, path := range side.Paths {
			found, err := o.launches(path, &set.Notes)
			if err != nil {
				return set, fmt.Errorf("%s side: %w", gain.Arms[i], err)
			}
			launches[i] = append(launches[i], found...)
			printed = printed && (gain.Arms[i] != gain.Perfect || len(found[0].lines) > 0)
		}
	}
	set.Run.Reports = launch.Quote([]string{strings.Join(sides[0].Paths, ","), strings.Join(sides[1].Paths, ",")})
	set.Campaign = gain.Recorded{Threshold: o.Threshold, Builds: o.Builds,
		Command: strings.Join(sides[0].Paths, ", ") + " against " + strings.Join(sides[1].Paths, ", ")}
	for i, arm := range gain.Arms {
		proof := gain.Proof{Arm: arm, Rank: gain.AllRanks, Grade: gain.Measured, Evidence: "every report says so"}
		if o.Trust {
			proof.Grade, proof.Evidence = gain.Claimed, "taken on trust"
		}
		for pair, l := range launches[i] {
			if err := set.add(&o, l, arm, pair); err != nil {
				return set, fmt.Errorf("%s side: %s: %w", arm, l.name, err)
			}
			for _, p := range o.proofs(l, arm, printed) {
				if gain.Weaker(p.Grade, proof.Grade) != proof.Grade {
					proof.Grade, proof.Evidence = p.Grade, p.Evidence
				}
			}
		}
		if !o.Builds.Named() {
			set.Campaign.Proof = append(set.Campaign.Proof, proof)
		}
	}
	if n, p := len(launches[0]), len(launches[1]); n != p {
		return set, usagef("the normal side holds %s and the perfect side %d: want as many, the n-th of both make a pair",
			quantity.Count(n, "launch"), p)
	}
	if len(launches[0]) > 1 && (launches[0][1].OfClient() || launches[1][1].OfClient()) { // which reports do not show
		set.Campaign.Checks = []gain.Check{gain.NewCheck(gain.CheckLaunches, gain.Warn, "assumed")}
	}
	set.Notes = append(set.Notes,
		"pairs are the n-th launches of both sides; the order of launches is not in the reports, so drift is not checked")
	return set, nil
}

// readLaunches reads the launches of a file: one report, or several.
func readLaunches(path string, custom []metrics.Custom) ([]metrics.Result, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return metrics.ParseRuns(path, f, custom)
}

// launches are the launches of a file. Runs of one client are repetitions on one server, and one launch.
func (o ReportOptions) launches(path string, notes *[]string) (found []reported, err error) {
	runs, err := readLaunches(path, o.Custom)
	if err != nil {
		return nil, err
	}
	one, ok, err := metrics.Repeated(runs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if ok && len(runs) > 1 {
		*notes = append(*notes, fmt.Sprintf("%s: %s of a client count as one launch, by their means; give "+
			"the runs of each launch of the server in a file of its own", path, quantity.Count(len(runs), "run")))
		runs = []metrics.Result{one}
	}
	lines, err := bench.ReportLines(path)
	for i, run := range runs {
		name := path
		if len(runs) > 1 {
			name = fmt.Sprintf("%s, launch %d", path, i+1)
		}
		for _, w := range run.Warnings {
			*notes = append(*notes, name+": "+w)
		}
		found = append(found, reported{run, name, lines})
	}
	return found, err
}

// proofs are what a launch shows of its routing: its report's own word, else the lines that its ranks
// printed. Trust stands in only where there is neither, and never overrides what they show.
func (o ReportOptions) proofs(l reported, arm gain.Arm, printed bool) []gain.Proof {
	shown := bench.JudgeReport(arm, l.Proof, l.lines, printed)
	for i, p := range shown {
		of := l.name
		if p.Rank.Defined() && !l.Proof.Claimed {
			of = fmt.Sprintf("%s, rank %d", l.name, p.Rank)
		}
		shown[i].Evidence = of + ": " + p.Evidence
	}
	if len(shown) > 0 || o.Trust {
		return shown
	}
	return []gain.Proof{{Arm: arm, Rank: gain.AllRanks, Grade: gain.None, Evidence: l.name +
		" does not say how it was routed (--trust-arms takes it as the " + string(arm) + " arm)"}}
}

// add adds a launch. All must have the metric of the first one.
func (set *ReportSet) add(o *ReportOptions, l reported, arm gain.Arm, pair int) error {
	m, err := l.Wanted(o.Metric)
	if err != nil {
		return err
	}
	c := &set.Campaign
	if len(c.Measurements) == 0 {
		o.Metric, c.Metric, set.Run.Format = m.Name, m.Metric, l.Format
	}
	if c.Metric != m.Metric {
		return marked{fmt.Errorf("metric %q is defined as %q in %q on one side and %q in %q on the other: compare outputs "+
			"of the same tool", m.Name, c.Metric.Definition, c.Metric.Unit, m.Definition, m.Unit), ErrNotComparable}
	}
	if arm == gain.Normal {
		c.Ranks = max(c.Ranks, l.Proof.Ranks)
	}
	measured := bench.MeasurementOf(l.Result, m)
	measured.Unit, measured.Arm, measured.Position = pair, arm, gain.UnknownPosition
	if len(o.Custom) == 0 { // a number of the user's may come from any output
		tool, _, _ := strings.Cut(l.Format, "/")
		measured.Setup = map[string]string{"tool": tool}
		maps.Copy(measured.Setup, l.Setup)
	}
	c.Measurements = append(c.Measurements, measured)
	return nil
}
