package page

import (
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
)

// timeLoad answers whether time follows load.
func (p Page) timeLoad() (section, error) {
	s := section{ID: "time-load", Title: "Does time follow load?"}
	if len(p.arms) == 0 {
		return s, nil
	}
	spec := plots.TimeAgainstLoad(p.arms...)
	if err := s.addFigure(plots.Scatter(spec)); err != nil {
		return s, err
	}
	if len(s.Blocks) == 0 {
		s.Answer = "Not known: the traces carry no recorded load."
		s.addText("With the engine's expert statistics of the same run beside each trace, this section sets the time of each rank or expert against its slots. Without them an uneven time may have causes other than routing.")
		return s, nil
	}
	s.Answer = spec.Alt
	t := table{
		Caption: "The lines of the figure, by least squares",
		Columns: append(text("arm"), numeric("points", "time per slot", "time at no load", "variance explained by load (r²)")...),
	}
	for _, c := range spec.Clouds {
		f, perSlot := c.Fit, missing
		if !c.Window {
			perSlot = plots.Duration(f.SlopeNS)
		}
		t.Rows = append(t.Rows, row(c.Name, f.Points, perSlot, plots.Duration(f.InterceptNS), router.Number(f.R2)))
	}
	s.addTable(t)
	return s, nil
}
