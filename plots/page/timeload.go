package page

import (
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// timeLoad answers whether time follows load.
func (p Page) timeLoad() section {
	s := section{ID: "time-load", Title: "Does time follow load?"}
	if len(p.arms) == 0 {
		return s
	}
	spec := plots.TimeAgainstLoad(p.arms...)
	s.addFigure(plots.Scatter(spec))
	if len(s.Blocks) == 0 {
		s.Answer = "Unknown: no load is recorded beside the traces."
		s.addText("Give the engine's expert statistics of the same run (--counts-normal, --counts-perfect) to set the time of each rank or expert against its slots. Without them, uneven time may have causes other than routing.")
		return s
	}
	s.Answer = spec.Alt
	t := table{Caption: "Least-squares lines of the figure", Columns: columns("arm", "#points", "#time per slot", "#time at no load", "#variance explained by load (r²)")}
	for _, c := range spec.Clouds {
		perSlot := quantity.Unknown
		if !c.Windows {
			perSlot = quantity.Duration(c.Fit.SlopeNS)
		}
		t.add(c.Name, len(c.Slots), perSlot, quantity.Duration(c.Fit.InterceptNS), router.Number(c.Fit.R2))
	}
	s.addTable(t)
	return s
}
