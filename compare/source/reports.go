package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
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

// ReadReports reads benchmark reports as a campaign. The n-th launches of both
// sides make a pair.
func ReadReports(sides [2]Side, o ReportOptions) (ReportSet, error) {
	r := reportReader{ReportOptions: o, said: map[gain.Arm][]gain.Proof{}, count: map[gain.Arm]int{}}
	r.set.Campaign = gain.Recorded{
		Command:   fmt.Sprintf("%s against %s", strings.Join(sides[0].Paths, ", "), strings.Join(sides[1].Paths, ", ")),
		Threshold: o.Threshold, Builds: o.Builds,
	}
	r.set.Run.Reports = launch.Quote([]string{strings.Join(sides[0].Paths, ","), strings.Join(sides[1].Paths, ",")})
	r.printed = !slices.ContainsFunc(sides[1].Paths, func(path string) bool {
		lines, err := bench.JudgeReport(gain.Perfect, path, metrics.Proof{}, false)
		return err != nil || len(lines) == 0
	})
	for i, side := range sides {
		for _, path := range side.Paths {
			if err := r.read(gain.Arms[i], path); err != nil {
				return ReportSet{}, fmt.Errorf("%s side: %w", gain.Arms[i], err)
			}
		}
		if !o.Builds.Named() {
			r.set.Campaign.Proof = append(r.set.Campaign.Proof, r.proof(gain.Arms[i]))
		}
	}
	if n, p := r.count[gain.Normal], r.count[gain.Perfect]; n != p {
		return ReportSet{}, usagef(
			"the normal side holds %s and the perfect side %d: want as many, the n-th of both make a pair",
			quantity.Count(n, "launch"), p)
	}
	r.set.Notes = append(r.set.Notes,
		"pairs are the n-th launches of both sides; the order of launches is not in the reports, so drift is not checked")
	return r.set, nil
}

type reportReader struct {
	ReportOptions
	set      ReportSet
	compared *metrics.Metric // of the first report, which all others must match
	count    map[gain.Arm]int
	said     map[gain.Arm][]gain.Proof // of each launch
	printed  bool                      // ranks say in every report of the perfect side that the switch took effect
}

// read adds the launches of one file.
func (r *reportReader) read(arm gain.Arm, path string) error {
	runs, err := readLaunches(path, r.Custom)
	if err != nil {
		return err
	}
	one, ok, err := metrics.Repeated(runs)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if ok && len(runs) > 1 {
		r.set.Notes = append(r.set.Notes, fmt.Sprintf("%s: %s of a client count as one launch, by their means; give "+
			"the runs of each launch of the server in a file of its own", path, quantity.Count(len(runs), "run")))
		runs = []metrics.Result{one}
	}
	for i, run := range runs {
		name := path
		if len(runs) > 1 {
			name = fmt.Sprintf("%s, launch %d", path, i+1)
		}
		if err := r.add(arm, run); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, w := range run.Warnings {
			r.set.Notes = append(r.set.Notes, name+": "+w)
		}
		said, err := r.evidence(run, arm, path, name)
		if err != nil {
			return err
		}
		r.said[arm] = append(r.said[arm], said...)
	}
	return nil
}

// proof is the weakest of what the launches of an arm show.
func (r *reportReader) proof(arm gain.Arm) gain.Proof {
	weakest := gain.Proof{Arm: arm, Rank: gain.AllRanks, Grade: gain.Measured, Evidence: "every report says so"}
	if r.Trust {
		weakest.Grade, weakest.Evidence = gain.Claimed, "taken on trust"
	}
	for _, p := range r.said[arm] {
		if gain.Weaker(p.Grade, weakest.Grade) != weakest.Grade {
			weakest.Grade, weakest.Evidence = p.Grade, p.Evidence
		}
	}
	return weakest
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

// evidence is what a launch shows of its routing: its report's own word, else the lines that its ranks
// printed. Trust stands in only where there is neither, and never overrides what they show.
func (r *reportReader) evidence(run metrics.Result, arm gain.Arm, path, launch string) ([]gain.Proof, error) {
	shown, err := bench.JudgeReport(arm, path, run.Proof, r.printed)
	for i, p := range shown {
		of := launch
		if p.Rank.Defined() && !run.Proof.Claimed {
			of = fmt.Sprintf("%s, rank %d", launch, p.Rank)
		}
		shown[i].Evidence = of + ": " + p.Evidence
	}
	if err != nil || len(shown) > 0 || r.Trust {
		return shown, err
	}
	return []gain.Proof{{Arm: arm, Rank: gain.AllRanks, Grade: gain.None, Evidence: launch +
		" does not say how it was routed (--trust-arms takes it as the " + string(arm) + " arm)"}}, nil
}

func (r *reportReader) add(arm gain.Arm, run metrics.Result) error {
	if load := bench.RankLoad(run.Proof); arm == gain.Normal && load.Defined() {
		r.set.Campaign.Ranks, r.set.Campaign.RankLoad = run.Proof.Ranks, max(r.set.Campaign.RankLoad, load)
	}
	pair := r.count[arm]
	if r.count[arm]++; pair == 1 && run.OfClient() && len(r.set.Campaign.Checks) == 0 { // which reports do not show
		r.set.Campaign.Checks = []gain.Check{gain.NewCheck(gain.CheckLaunches, gain.Warn, "assumed")}
	}
	name := r.Metric
	if name == "" && r.compared != nil {
		name = r.compared.Name
	}
	m, err := run.Wanted(name)
	switch {
	case err != nil:
		return err
	case r.compared == nil:
		r.compared, r.set.Campaign.Metric, r.set.Run.Format = &m, m.Metric, run.Format
	}
	if err := r.compared.Comparable(m); err != nil {
		return marked{err, ErrNotComparable}
	}
	l := bench.MeasurementOf(run, m)
	l.Unit, l.Arm, l.Position = pair, arm, gain.UnknownPosition
	if len(r.Custom) == 0 { // a number of the user's may come from any output
		tool, _, _ := strings.Cut(run.Format, "/")
		l.Setup = map[string]string{"tool": tool}
		maps.Copy(l.Setup, run.Setup)
	}
	r.set.Campaign.Measurements = append(r.set.Campaign.Measurements, l)
	return nil
}
