package plots

import (
	"fmt"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/nsys"
)

// TimeAgainstLoad sets observed time against recorded load. Where experts have
// kernels of their own there is one point per layer and expert; otherwise, as
// with grouped kernels, one per layer and rank. Allocated times never enter:
// they follow load by construction. Arms are mixed only at one grain, so the
// finer one is used when every arm with loads has it.
func TimeAgainstLoad(arms ...Arm) ScatterSpec {
	s := ScatterSpec{Name: "time-load", Title: "Does time follow load?"}
	grain, points, steps := "rank", rankPoints, Arm.steps
	if observedExperts(arms) {
		grain, points, steps = "expert", expertPoints, Arm.allSteps
	}
	s.LoadLabel = "recorded load of one " + grain + " in one layer"
	s.TimeLabel = "time of its expert kernels " + per(arms)
	s.Caption = fmt.Sprintf("%s. One point per layer and %s: observed kernel time, mean over steps, against recorded slots. Lines are least squares.", timedShape(arms, steps), grain)
	var answers []string
	for _, a := range arms {
		c := points(a)
		c.Name = a.Name
		c.Fit = fitOf(c.Slots, c.TimeNS)
		s.Clouds = append(s.Clouds, c)
		if c.Fit.Points > 1 && known(c.Fit.R2) {
			answers = append(answers, fmt.Sprintf("%s: %s per slot on top of %s, load explains %.0f %% of the variance of time.",
				a.Name, Duration(c.Fit.SlopeNS), Duration(c.Fit.InterceptNS), 100*c.Fit.R2))
		}
	}
	s.Alt = strings.Join(answers, " ")
	return s
}

func observedExperts(arms []Arm) bool {
	some := false
	for _, a := range arms {
		for _, e := range a.Trace.Experts {
			if e.Known && e.Basis != nsys.Observed {
				return false
			}
			some = some || e.Known
		}
	}
	return some
}

func expertPoints(a Arm) (c Cloud) {
	steps := float64(max(1, len(a.allSteps())))
	for _, e := range a.Trace.Experts {
		if e.Known {
			c.Slots = append(c.Slots, float64(e.Slots))
			c.TimeNS = append(c.TimeNS, float64(e.TotalNS)/steps)
		}
	}
	return c
}

// rankPoints leaves out a rank and layer whose load is known only in part, or
// that shows no kernel of the experts phase.
func rankPoints(a Arm) (c Cloud) {
	type place struct{ layer, rank int }
	slots, times := map[place]float64{}, map[place]float64{}
	for _, e := range a.Trace.Experts {
		at := place{e.Layer, e.Rank}
		if e.Known {
			slots[at] += float64(e.Slots)
		} else {
			slots[at] = nan
		}
	}
	steps := a.divisor()
	for _, cell := range a.cells() {
		if cell.Phase == nsys.PhaseExperts {
			times[place{cell.Layer, cell.Rank}] += work(cell) / steps
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
// three points and the loads differ.
func fitOf(slots, times []float64) Fit {
	f := Fit{SlopeNS: nan, InterceptNS: nan, R2: nan, Points: len(slots)}
	if len(slots) < 3 || stat.Variance(slots, nil) == 0 {
		return f
	}
	f.InterceptNS, f.SlopeNS = stat.LinearRegression(slots, times, nil, false)
	f.R2 = stat.RSquared(slots, times, nil, f.InterceptNS, f.SlopeNS)
	return f
}
