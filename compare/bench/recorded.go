package bench

import (
	"cmp"
	"fmt"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/shown"
)

// Recorded is what Judge needs of the launches that bench has recorded so far, to
// be judged. Launches that were never started are left out.
func Recorded(c *Campaign) gain.Recorded {
	s, of := c.Spec, converter{spec: c.Spec}
	r := gain.Recorded{More: s.more(), Head: gain.Head{Command: launch.Quote(shown.Mask(s.Command.Normal)),
		Design: gain.LaunchPerArm, Threshold: s.Threshold, Chance: s.Treatment.Chance(), Builds: s.Builds, Proof: c.proofs()}}
	if s.Design.Within() {
		r.Design = gain.WithinLaunch
	}
	for _, l := range c.Launches {
		if len(l.Attempts) > 0 {
			r.Measurements = append(r.Measurements, of.measurements(l)...)
		}
	}
	for _, v := range c.views(gain.Normal) {
		r.Ranks = max(r.Ranks, s.ranks(v))
	}
	if s.Points != nil {
		r.PointName = s.Points.Name
		for _, value := range s.Points.Values {
			r.Points = append(r.Points, points.Number(value))
		}
	}
	r.Differences, r.Compared = c.allDifferences()
	r.Metric = of.metric
	r.Checks = c.checks(r.Metric, proof.Seen(r.Proof, s.Treatment.Silent))
	return r
}

// converter turns launches into what is judged. The first one with a result sets the
// metric and format that all others must have.
type converter struct {
	spec   Spec
	metric gain.Metric
	format string
}

// measurements are the timed segments of a launch that was started, or that it has none.
func (c *converter) measurements(l Launch) (all []gain.Measurement) {
	last, within, note := l.Attempts[len(l.Attempts)-1], c.spec.Design.Within(), attemptNote(l)
	if last.State == Failed || last.State == Lost || last.State == Interrupted || !within && len(last.Segments) == 0 {
		return []gain.Measurement{{Unit: l.Pair, Arm: cmp.Or(l.Arm, gain.Normal), Position: l.Position, Note: note,
			Point: points.Number(l.Point), Status: string(last.State)}}
	}
	for _, s := range last.Segments {
		if !s.Timed {
			continue
		}
		m := c.measured(*s.Result)
		m.Load, m.Point, m.Note = c.spec.loadOf(last, s), points.Number(s.Point), note
		if m.Unit, m.Arm, m.Position = l.Pair, l.Arm, l.Position; within {
			m.Arm, m.Block, m.Position, note = gain.Arm(s.Arm), s.Block, len(all), ""
		}
		all = append(all, m)
	}
	return all
}

// measured is what a report holds to judge, or why there is nothing.
func (c *converter) measured(result metrics.Result) gain.Measurement {
	name := cmp.Or(c.spec.Metric, result.Primary)
	m, ok := result.Metric(name)
	if !ok {
		return gain.Measurement{Status: "without " + name}
	}
	if c.metric == (gain.Metric{}) {
		c.metric, c.format = m.Metric, result.Format
	}
	if c.metric != m.Metric || c.format != result.Format {
		return gain.Measurement{Status: fmt.Sprintf("reports %s (%s) of %s, not %s (%s) of %s", m.Name, m.Definition,
			result.Format, c.metric.Name, c.metric.Definition, c.format)}
	}
	return MeasurementOf(result, m)
}

// attemptNote tells of the last attempt that failed: "attempt 3 failed: no memory".
func attemptNote(l Launch) (note string) {
	for _, a := range l.Attempts {
		if a.Error != "" {
			note = fmt.Sprintf("attempt %d %s: %s", a.Number, a.State, a.Error)
		}
	}
	return note
}

// MeasurementOf is a launch by its report, compared by one of the report's metrics. Its
// pair, arm and position are for the caller to fill in.
func MeasurementOf(r metrics.Result, compared metrics.Metric) gain.Measurement {
	l := gain.Measurement{Status: gain.StatusOK, Value: compared.Value.Float64(), Work: r.Work, Setup: r.Setup,
		Secondary: map[gain.Metric]float64{}, Load: reportedLoad(r.Proof), Attention: r.Attention}
	for _, m := range r.Metrics {
		if m.Name != compared.Name {
			l.Secondary[m.Metric] = m.Value.Float64()
		}
	}
	return l
}
