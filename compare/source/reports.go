package source

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
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

// ReadReports reads benchmark reports as a campaign, and judges it. The n-th launches of both sides make a pair.
func ReadReports(sides [2]Side, o ReportOptions) (c Campaign, err error) {
	recorded, err := o.recorded(sides, &c)
	if err == nil {
		c.Result = gain.Judge(recorded)
	}
	return c, err
}

// recorded is what reports hold to judge. It says in the campaign how they were read.
func (o ReportOptions) recorded(sides [2]Side, c *Campaign) (r gain.Recorded, err error) {
	var launches [2][]proof.Launch
	for i, arm := range gain.Arms {
		for _, path := range sides[i].Paths {
			runs, lines, err := o.launches(path, c)
			for n, run := range runs {
				name := path
				if len(runs) > 1 {
					name = fmt.Sprintf("%s, launch %d", path, n+1)
				}
				for _, w := range run.Warnings {
					c.Notes = append(c.Notes, name+": "+w)
				}
				m, wrong := o.measured(run, &r.Metric)
				if wrong != nil && err == nil {
					err = fmt.Errorf("%s: %w", name, wrong)
				}
				m.Unit, m.Arm, m.Position = len(launches[i]), arm, gain.UnknownPosition
				if m.Unit > 0 && run.OfClient() { // reports do not show whether each is of a start of its own
					r.Checks = []gain.Check{gain.NewCheck(gain.CheckLaunches, gain.Warn, "assumed")}
				}
				r.Measurements, c.Run.Format = append(r.Measurements, m), cmp.Or(c.Run.Format, run.Format)
				launches[i] = append(launches[i], proof.Launch{Name: name, Report: run.Proof, Ranks: run.Proof.Ranks, Lines: lines})
			}
			if err != nil {
				return r, fmt.Errorf("%s side: %w", arm, err)
			}
		}
	}
	if n, p := len(launches[0]), len(launches[1]); n != p {
		return r, usagef("the normal side holds %s and the perfect side %d: want as many, the n-th of both make a pair",
			quantity.Count(n, "launch"), p)
	}
	r.Threshold, r.Builds = o.Threshold, o.Builds
	r.Command = strings.Join(sides[0].Paths, ", ") + " against " + strings.Join(sides[1].Paths, ", ")
	c.Run.Reports = launch.Quote([]string{strings.Join(sides[0].Paths, ","), strings.Join(sides[1].Paths, ",")})
	c.Notes = append(c.Notes,
		"pairs are the n-th launches of both sides; the order of launches is not in the reports, so drift is not checked")
	for _, l := range launches[0] {
		r.Ranks = max(r.Ranks, l.Ranks)
	}
	if !o.Builds.Named() {
		r.Proof = bench.JudgeReports(launches, o.Trust)
	}
	return r, nil
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

// launches are the launches of a file, and the lines that its ranks printed. Runs of one client are repetitions on one
// server, and one launch.
func (o ReportOptions) launches(path string, c *Campaign) ([]metrics.Result, []evidence.ProofLine, error) {
	runs, err := readLaunches(path, o.Custom)
	if err != nil {
		return nil, nil, err
	}
	one, ok, err := metrics.Repeated(runs)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if ok && len(runs) > 1 {
		c.Notes = append(c.Notes, fmt.Sprintf("%s: %s of a client count as one launch, by their means; give "+
			"the runs of each launch of the server in a file of its own", path, quantity.Count(len(runs), "run")))
		runs = []metrics.Result{one}
	}
	lines, err := bench.ReportLines(path)
	return runs, lines, err
}

// measured is a launch by its report. All must have the metric of the first one.
func (o ReportOptions) measured(run metrics.Result, first *gain.Metric) (gain.Measurement, error) {
	m, err := run.Wanted(cmp.Or(first.Name, o.Metric))
	if err != nil {
		return gain.Measurement{}, err
	}
	if *first == (gain.Metric{}) {
		*first = m.Metric
	} else if *first != m.Metric {
		return gain.Measurement{}, marked{fmt.Errorf("metric %q is defined as %q in %q on one side and %q in %q on the "+
			"other: compare outputs of the same tool", m.Name, first.Definition, first.Unit, m.Definition, m.Unit),
			ErrNotComparable}
	}
	measured := bench.MeasurementOf(run, m)
	if len(o.Custom) == 0 { // a number of the user's may come from any output
		tool, _, _ := strings.Cut(run.Format, "/")
		measured.Setup = map[string]string{"tool": tool}
		maps.Copy(measured.Setup, run.Setup)
	}
	return measured, nil
}
