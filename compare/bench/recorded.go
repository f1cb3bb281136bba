package bench

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/shown"
)

// Recorded is what Judge needs of the launches that bench has recorded so far, to
// be judged. Warm-ups and launches that were never started are left out.
func Recorded(c *Campaign) gain.Campaign {
	differences, compared := c.allDifferences()
	r := converter{spec: c.Spec}
	var launches []gain.Measurement
	for _, l := range c.Launches {
		if l.Kind == Timed && len(l.Attempts) > 0 {
			launches = append(launches, r.launches(l)...)
		}
	}
	ranks, load := c.rankLoad()
	pointName, judged := c.Spec.Points.Judged(r.ranks)
	checks := c.checks()
	if check, ok := c.Spec.checkRate(r.metric); ok {
		checks = append(checks, check)
	}
	design := gain.LaunchPerArm
	if c.Spec.Design.Within() {
		design = gain.WithinLaunch
	}
	return gain.Campaign{
		Design: design, More: c.Spec.more(), Builds: c.Spec.Builds, PointName: pointName, Points: judged,
		Command: launch.Quote(shown.Mask(c.Spec.Command.Normal)), Metric: r.metric, Measurements: launches,
		Criteria: gain.Criteria{Threshold: c.Spec.Threshold, Confidence: c.Spec.Confidence, Tolerance: c.Spec.WorkTolerance},
		Proof:    c.proofs(), Chance: c.Spec.Treatment.Chance(), Ranks: ranks, RankLoad: load, Loads: c.loads(),
		Compared:    compared,
		Differences: differences, Checks: checks,
	}
}

// converter turns launches into what is judged. The first one with a result sets the
// metric and format that all others must have.
type converter struct {
	spec   Spec
	metric gain.Metric
	format string
	ranks  int // that a report names, else those of the spec
}

// launches are a launch that was started, once for each of its points.
func (r *converter) launches(l Launch) (launches []gain.Measurement) {
	if r.spec.Design.Within() {
		return r.segments(l)
	}
	last := l.Attempts[len(l.Attempts)-1]
	for i, view := range last.pointAttempts() {
		j := r.measured(view)
		j.Unit, j.Arm, j.Position, j.Note = l.Pair, l.Arm, l.Position, attemptNote(l)
		if len(last.Points) > 0 {
			j.Point = points.Number(last.Points[i].Value)
		} else if l.Point != "" {
			j.Point = points.Number(l.Point)
		}
		launches = append(launches, j)
	}
	return launches
}

// measured is what an attempt reported, or why there is nothing of it to judge.
func (r *converter) measured(a Attempt) gain.Measurement {
	if a.Result == nil {
		return gain.Measurement{Status: string(a.State)}
	}
	name := r.spec.Metric
	if name == "" {
		name = a.Result.Primary
	}
	m, ok := a.Result.Metric(name)
	if !ok {
		return gain.Measurement{Status: "without " + name}
	}
	if r.metric == (gain.Metric{}) {
		r.metric, r.format, r.ranks = m.Metric, a.Result.Format, max(r.spec.Ranks, a.Result.Proof.Ranks)
	}
	if r.metric != m.Metric || r.format != a.Result.Format {
		return gain.Measurement{Status: fmt.Sprintf("reports %s (%s) of %s, not %s (%s) of %s", m.Name, m.Definition,
			a.Result.Format, r.metric.Name, r.metric.Definition, r.format)}
	}
	return MeasurementOf(*a.Result, m)
}

// attemptNote tells of the attempts that failed.
func attemptNote(l Launch) string {
	var notes []string
	for _, a := range l.Attempts {
		if a.Error != "" {
			notes = append(notes, fmt.Sprintf("attempt %d %s: %s", a.Number, a.State, a.Error))
		}
	}
	return strings.Join(notes, "; ")
}

// MeasurementOf is a launch by its report, compared by one of the report's metrics. Its
// pair, arm and position are for the caller to fill in.
func MeasurementOf(r metrics.Result, compared metrics.Metric) gain.Measurement {
	l := gain.Measurement{Status: gain.StatusOK, Value: compared.Value.Float64(), Work: reportedWork(r), Setup: r.Setup}
	for _, m := range r.Metrics {
		if m.Name != compared.Name && m.Value.Defined() {
			l.Secondary = append(l.Secondary, gain.Reported{Metric: m.Metric, Value: m.Value.Float64()})
		}
	}
	return l
}

func reportedWork(r metrics.Result) map[string]float64 {
	w, work := r.Work, make(map[string]float64)
	for name, length := range map[string]router.Number{gain.WorkInputLength: r.Lengths.Input,
		gain.WorkOutputLength: r.Lengths.Output} {
		if length > 0 {
			work[name] = length.Float64()
		}
	}
	for name, count := range map[string]metrics.Count{
		gain.WorkRequests: w.Requests, gain.WorkInputTokens: w.InputTokens, gain.WorkOutputTokens: w.OutputTokens,
		gain.WorkErrors: w.Errors,
	} {
		if count.Known {
			work[name] = float64(count.N)
		}
	}
	return work
}
