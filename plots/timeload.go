package plots

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// TimeAgainstLoad sets observed time per step against recorded load per recorded
// step. Where experts have kernels of their own there is one point per layer and
// expert; otherwise, as with grouped kernels, one per layer and rank. Allocated
// times never enter: they follow load by construction. Arms are mixed only at
// one grain, so the finer one is used when every arm with loads has it.
func TimeAgainstLoad(arms ...Arm) ScatterSpec {
	s := ScatterSpec{Name: "time-load", Title: "Does time follow load?"}
	grain, points, steps := "rank", rankPoints, Arm.steps
	if observedExperts(arms) {
		grain, points, steps = "expert", expertPoints, Arm.allSteps
	}
	s.LoadLabel = "recorded load of one " + grain + " in one layer, per recorded step"
	s.TimeLabel = "time of its expert kernels " + per(arms)
	s.Caption = fmt.Sprintf("%s. One point per layer and %s: observed kernel time, mean over steps, against recorded slots, mean over the recorded steps. Lines are least squares.", timedShape(arms, steps), grain)
	var answers []string
	for _, a := range arms {
		c := points(a)
		c.Name = a.Name
		c.Fit = fitOf(c.Slots, c.TimeNS)
		c.Window = countedInWindows(a.Trace)
		s.Clouds = append(s.Clouds, c)
		if len(c.Slots) > 0 {
			answers = append(answers, c.answer())
		}
	}
	s.Alt = strings.Join(answers, " ")
	return s
}

// answer says in words what the line shows, or why there is none.
func (c Cloud) answer() string {
	if !c.Fit.drawn() {
		return c.Name + ": no line, which takes three points that differ in load and in time."
	}
	cost := fmt.Sprintf("%s per slot on top of %s", Duration(c.Fit.SlopeNS), Duration(c.Fit.InterceptNS))
	if c.Window {
		cost = "the time per slot is not known, because each recorded step adds up an unknown number of passes"
	}
	return fmt.Sprintf("%s: %s; load explains %s of the variance of time.", c.Name, cost, Percent(c.Fit.R2))
}

// countedInWindows reports statistics whose steps are sums of an unknown number
// of forward passes, of which the reader of the statistics warns.
func countedInWindows(t *nsys.Trace) bool {
	return slices.ContainsFunc(t.Warnings, func(w router.Warning) bool { return w.Code == "counts_window" })
}

func observedExperts(arms []Arm) bool {
	some := false
	for _, a := range arms {
		for _, e := range a.Trace.Experts {
			if e.Known && e.Basis != imbalance.Observed {
				return false
			}
			some = some || e.Known
		}
	}
	return some
}

func expertPoints(a Arm) (c Cloud) {
	load, time := a.expertLoad(), a.expertTime()
	for _, e := range a.Trace.Experts {
		if slots := load(e); known(slots) {
			c.Slots, c.TimeNS = append(c.Slots, slots), append(c.TimeNS, time(e))
		}
	}
	return c
}

// rankPoints leaves out a rank and layer whose load is known only in part, or
// that shows no kernel of the experts phase.
func rankPoints(a Arm) (c Cloud) {
	type place struct{ layer, rank int }
	slots, times := map[place]float64{}, map[place]float64{}
	load := a.expertLoad()
	for _, e := range a.Trace.Experts {
		slots[place{int(e.Layer), e.Rank}] += load(e) // NaN stays NaN
	}
	steps := a.divisor()
	for _, cell := range a.cells() {
		if cell.Phase == nsys.PhaseExperts {
			times[place{int(cell.Layer), cell.Rank}] += work(cell) / steps
		}
	}
	layers, _ := expertAxes([]Arm{a})
	ranks := ranks([]Arm{a})
	for _, layer := range layers {
		for _, rank := range ranks {
			load, hasLoad := slots[place{layer, rank}]
			time, hasTime := times[place{layer, rank}]
			if hasLoad && hasTime && known(load) {
				c.Slots, c.TimeNS = append(c.Slots, load), append(c.TimeNS, time)
			}
		}
	}
	return c
}

// fitOf is the least-squares line of time over load, unknown unless there are
// three points of which neither the loads nor the times are all the same.
func fitOf(slots, times []float64) Fit {
	f := Fit{SlopeNS: nan, InterceptNS: nan, R2: nan, Points: len(slots)}
	if len(slots) < 3 || stat.Variance(slots, nil) == 0 || stat.Variance(times, nil) == 0 {
		return f
	}
	f.InterceptNS, f.SlopeNS = stat.LinearRegression(slots, times, nil, false)
	f.R2 = stat.RSquared(slots, times, nil, f.InterceptNS, f.SlopeNS)
	return f
}
