package source

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/input"
)

// ReportOptions say how benchmark reports are read and judged.
type ReportOptions struct {
	// Metric is the metric compared; without a name: the first report's primary one.
	Metric    metrics.Wanted `flag:"metric"`
	Trust     bool           `flag:"trust-arms"` // take the sides as the arms they are given as
	Threshold float64        `flag:"threshold" in:"%" preset:"10%"`
	Builds    gain.Builds
}

// reports are the launches that benchmark reports hold, and what reading these found.
type reports struct {
	ReportOptions
	recorded gain.Recorded
	launches [2][]proof.Launch   // by arm
	runs     [2][]metrics.Result // by arm
	campaign Campaign
}

// ReadReports reads benchmark reports as a campaign, and judges it. The n-th launches of both sides make a pair.
func ReadReports(sides [2]Side, o ReportOptions) (Campaign, error) {
	r := reports{ReportOptions: o}
	r.recorded.Head = gain.Head{Design: gain.LaunchPerArm, Threshold: o.Threshold, Builds: o.Builds,
		Command: strings.Join(sides[0].Paths, ", ") + " against " + strings.Join(sides[1].Paths, ", ")}
	for i, arm := range o.Builds.Names() {
		for _, path := range sides[i].Paths {
			if err := r.read(i, path); err != nil {
				return r.campaign, fmt.Errorf("%s side: %w", arm, err)
			}
		}
	}
	if n, p := len(r.launches[0]), len(r.launches[1]); n != p {
		return r.campaign, usagef("the normal side holds %d launches and the perfect side %d: want pairs", n, p)
	}
	if !o.Builds.Named() {
		r.recorded.Proof = bench.JudgeReports(r.launches, o.Trust)
	}
	if r.campaign.Result = gain.Judge(r.recorded); r.campaign.Result.Swapped() {
		slices.Reverse(sides[:])
	}
	given := []string{strings.Join(sides[0].Paths, ","), strings.Join(sides[1].Paths, ",")}
	if wanted := []string{"--metric", o.Metric.Text}; o.Metric.Text != "" {
		r.campaign.Run.Again, given = launch.Quote(append(wanted, "--", "YOUR_BENCHMARK")), slices.Concat(wanted, given)
	}
	r.campaign.Run.Reports = launch.Quote(given)
	r.campaign.Notes = append(r.campaign.Notes,
		"pairs are the n-th launches of both sides; the order of launches is not in the reports, so drift is not checked")
	return r.campaign, nil
}

// read reads the launches of a file of an arm.
func (r *reports) read(arm int, path string) error {
	runs, err := readRuns(path, r.Metric.Rule)
	if err != nil {
		return Meant(path, err, Reports)
	}
	lines, err := bench.ReportLines(path)
	for n, run := range runs {
		l := proof.Launch{Name: path, Report: run.Proof, Ranks: run.Proof.Ranks, Lines: lines}
		if len(runs) > 1 {
			l.Name = fmt.Sprintf("%s, launch %d", path, n+1)
		}
		if twin := r.twin(arm, path, run); twin != nil {
			twin.Lines = append(twin.Lines, lines...) // JSON holds none
			r.campaign.Notes = append(r.campaign.Notes, twin.Name+" and "+l.Name+" report one launch, which counts once")
			continue
		}
		if err := r.measure(arm, run); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		r.launches[arm], r.recorded.Ranks = append(r.launches[arm], l), max(r.recorded.Ranks, l.Ranks)
		for _, w := range run.Warnings {
			r.campaign.Notes = append(r.campaign.Notes, l.Name+": "+w)
		}
	}
	return err
}

// printed are the relative difference by which reports of one launch may round a number, and half of a printed 0.01.
const printed, lastDigit = 1e-4, 0.005001

// twin is the launch that a file beside this one reports in another format, as what a tool prints and its JSON do; nil
// for none.
//
//	normal/r.json and normal/stdout.log, both of 2560 tok/s → normal/r.json
func (r *reports) twin(arm int, path string, run metrics.Result) *proof.Launch {
	m, _ := run.Metric(cmp.Or(r.recorded.Metric.Name, r.Metric.Name, run.Primary))
	for i, other := range r.runs[arm] {
		o, _ := other.Metric(m.Name)
		near := m.Value > 0 && math.Abs(float64(o.Value-m.Value)) < max(printed*float64(m.Value), lastDigit)
		twin := &r.launches[arm][i]
		if near && other.Format != run.Format && filepath.Dir(twin.Name) == filepath.Dir(path) {
			return twin
		}
	}
	return nil
}

// readRuns reads the launches of a file: one report, or several.
func readRuns(path string, custom []metrics.Custom) ([]metrics.Result, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	runs, err := metrics.ParseRuns(path, f, custom)
	if err != nil {
		return nil, err
	}
	if runs, err = metrics.Launches(runs); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return runs, err
}

// measure takes the measurement of a launch from its report. All must have the metric of the first one.
func (r *reports) measure(arm int, run metrics.Result) error {
	first, unit := &r.recorded.Metric, len(r.launches[arm])
	m, err := run.Wanted(cmp.Or(first.Name, r.Metric.Name))
	switch {
	case err != nil:
		return err
	case *first == (gain.Metric{}):
		*first, r.campaign.Run.Format = m.Metric, run.Format
	case *first != m.Metric:
		return marked{fmt.Errorf("metric %q is defined as %q in %q on one side and %q in %q on the other: compare "+
			"outputs of the same tool", m.Name, first.Definition, first.Unit, m.Definition, m.Unit), ErrNotComparable}
	}
	measured := bench.MeasurementOf(run, m)
	measured.Unit, measured.Arm, measured.Position = unit, gain.Arms[arm], gain.UnknownPosition
	if points := metrics.Apart(append(r.runs[arm], run)[0], run); points != "" {
		return usagef("want repetitions of one run on each side, have %s: compare the runs of each setting alone", points)
	}
	if r.Metric.Rule == nil { // a number of the user's may come from any output
		tool, _, _ := strings.Cut(run.Format, "/")
		measured.Setup = map[string]string{"tool": tool}
		maps.Copy(measured.Setup, run.Setup)
	}
	if unit > 0 && run.OfClient() { // reports do not show whether each is of a start of its own
		r.recorded.Checks = []gain.Check{gain.NewCheck(gain.CheckLaunches, gain.Warn, "assumed")}
	}
	r.runs[arm], r.recorded.Measurements = append(r.runs[arm], run), append(r.recorded.Measurements, measured)
	return nil
}
