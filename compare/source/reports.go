package source

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// ReportOptions say how benchmark reports are read and judged.
type ReportOptions struct {
	// Metric is the name of the metric compared; empty: the first report's primary one.
	Metric    string  `flag:"metric"`
	Trust     bool    `flag:"trust-arms"` // take the sides as the arms they are given as
	Threshold float64 `flag:"threshold" in:"%" preset:"10%"`
	Custom    []metrics.Custom
	Builds    gain.Builds
}

// reports are the launches that benchmark reports hold, and what reading these found.
type reports struct {
	ReportOptions
	recorded gain.Recorded
	launches [2][]proof.Launch // by arm
	campaign Campaign
}

// ReadReports reads benchmark reports as a campaign, and judges it. The n-th launches of both sides make a pair.
func ReadReports(sides [2]Side, o ReportOptions) (Campaign, error) {
	r := reports{ReportOptions: o}
	r.recorded.Head = gain.Head{Design: gain.LaunchPerArm, Threshold: o.Threshold, Builds: o.Builds,
		Command: strings.Join(sides[0].Paths, ", ") + " against " + strings.Join(sides[1].Paths, ", ")}
	for i, arm := range gain.Arms {
		for _, path := range sides[i].Paths {
			if err := r.file(i, path); err != nil {
				return r.campaign, fmt.Errorf("%s side: %w", arm, err)
			}
		}
	}
	if n, p := len(r.launches[0]), len(r.launches[1]); n != p {
		return r.campaign, usagef("the normal side holds %s and the perfect side %d: want as many, the n-th of both make a "+
			"pair", quantity.Count(n, "launch"), p)
	}
	for _, l := range r.launches[0] {
		r.recorded.Ranks = max(r.recorded.Ranks, l.Ranks)
	}
	if !o.Builds.Named() {
		r.recorded.Proof = bench.JudgeReports(r.launches, o.Trust)
	}
	c := r.campaign
	c.Run.Reports = launch.Quote([]string{strings.Join(sides[0].Paths, ","), strings.Join(sides[1].Paths, ",")})
	c.Notes = append(c.Notes,
		"pairs are the n-th launches of both sides; the order of launches is not in the reports, so drift is not checked")
	c.Result = gain.Judge(r.recorded)
	return c, nil
}

// file reads the launches of a file of an arm.
func (r *reports) file(arm int, path string) error {
	runs, err := readRuns(path, r.Custom)
	if err != nil {
		return err
	}
	if runs, err = metrics.Launches(runs); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	lines, err := bench.ReportLines(path)
	for n, run := range runs {
		name := path
		if len(runs) > 1 {
			name = fmt.Sprintf("%s, launch %d", path, n+1)
		}
		m, err := r.measured(run)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.Unit, m.Arm, m.Position = len(r.launches[arm]), gain.Arms[arm], gain.UnknownPosition
		if m.Unit > 0 && run.OfClient() { // reports do not show whether each is of a start of its own
			r.recorded.Checks = []gain.Check{gain.NewCheck(gain.CheckLaunches, gain.Warn, "assumed")}
		}
		r.recorded.Measurements = append(r.recorded.Measurements, m)
		r.launches[arm] = append(r.launches[arm], proof.Launch{Name: name, Report: run.Proof, Ranks: run.Proof.Ranks,
			Lines: lines})
		for _, w := range run.Warnings {
			r.campaign.Notes = append(r.campaign.Notes, name+": "+w)
		}
	}
	return err
}

// readRuns reads the runs of a file: one report, or several.
func readRuns(path string, custom []metrics.Custom) ([]metrics.Result, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return metrics.ParseRuns(path, f, custom)
}

// measured is a launch by its report. All must have the metric of the first one.
func (r *reports) measured(run metrics.Result) (measured gain.Measurement, err error) {
	first := &r.recorded.Metric
	m, err := run.Wanted(cmp.Or(first.Name, r.Metric))
	if err != nil {
		return measured, err
	}
	if *first == (gain.Metric{}) {
		*first, r.campaign.Run.Format = m.Metric, run.Format
	} else if *first != m.Metric {
		return measured, marked{fmt.Errorf("metric %q is defined as %q in %q on one side and %q in %q on the other: compare "+
			"outputs of the same tool", m.Name, first.Definition, first.Unit, m.Definition, m.Unit), ErrNotComparable}
	}
	measured = bench.MeasurementOf(run, m)
	if len(r.Custom) == 0 { // a number of the user's may come from any output
		tool, _, _ := strings.Cut(run.Format, "/")
		measured.Setup = map[string]string{"tool": tool}
		maps.Copy(measured.Setup, run.Setup)
	}
	return measured, nil
}
