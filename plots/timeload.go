package plots

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/router/quantity"
)

// TimeAgainstLoad sets observed time per step against recorded load per recorded
// step. Where experts have kernels of their own there is one point per layer and
// expert; otherwise, as with grouped kernels, one per layer and rank. Allocated times
// are left out: they follow load by construction. The finer points are used when
// every arm with loads has them.
func TimeAgainstLoad(arms ...Arm) ScatterSpec {
	s := ScatterSpec{Name: "time-load", Title: "Does time follow load?"}
	byExpert := !slices.ContainsFunc(arms, func(a Arm) bool { return !a.PerStep.ObservedByExpert() })
	part := "rank"
	if byExpert {
		part = "expert"
	}
	s.LoadLabel = "recorded load of one " + part + " in one layer, per recorded step"
	s.TimeLabel = "time of its expert kernels " + per(arms)
	s.Caption = fmt.Sprintf("%s. One point per layer and %s: observed kernel time against recorded slots, each the mean over its steps. Lines are least squares.", timedExtent(arms), part)
	var answers []string
	for _, a := range arms {
		c := Cloud{a.Name, a.PerStep.TimeAgainstLoad(byExpert)}
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
	if !hasLine(c.Fit) {
		return c.Name + ": no line, which takes three points that differ in load and in time."
	}
	cost := fmt.Sprintf("%s per slot on top of %s", quantity.Duration(c.Fit.SlopeNS), quantity.Duration(c.Fit.InterceptNS))
	if c.Windows {
		cost = "the time per slot is unknown, because each recorded step adds up an unknown number of passes"
	}
	return fmt.Sprintf("%s: %s; load explains %s of the variance of time.", c.Name, cost, quantity.Percent(c.Fit.R2))
}

func hasLine(f perstep.Fit) bool { return known(f.R2) }
