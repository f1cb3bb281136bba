package plots

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"

	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// PlacementLayers draws the load of the busiest rank of each layer, as placed now and by the
// best placement, on windows that it was not learned from where there are any. Without such a
// layer the figure is empty.
func PlacementLayers(res *place.Result) Figure {
	best := res.Best()
	f := Figure{Name: "placement-layers", height: chartHeight}
	var now, placed marks
	var layers []int
	worst, lower, none := 0, 0, router.Undefined()
	for _, l := range res.Layers {
		after := l.Judged
		if !after.Defined() {
			after = l.Learned
		}
		if l.Plan != best.Plan || !(l.Baseline >= 1 && after >= 1) {
			continue
		}
		at := float64(len(layers))
		layers = append(layers, l.Layer)
		now.add(at, l.Baseline, none, none)
		placed.add(at, after, min(after, l.Baseline), max(after, l.Baseline))
		if after < l.Baseline {
			lower++
		}
		if was := now.XYs[worst].Y; was < l.Baseline.Float64() || was == l.Baseline.Float64() &&
			placed.XYs[worst].Y < after.Float64() {
			worst = len(layers) - 1
		}
	}
	if len(layers) == 0 {
		return f
	}
	p := newPanel("", "layer", "busiest rank (max/mean of load)")
	p.Add(rules())
	p.Add(slices.Concat(placed.points(disc(blue), softInk), now.points(ring(ink), softInk))...)
	p.X.Min, p.X.Max, p.X.Tick.Marker = -0.5, float64(len(layers))-0.5, indexTicks{labels(layers), 24}
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 1, 1+1.06*max(p.Y.Max-1, 0.01), valueTicks{""}
	f.panels = [][]*plot.Plot{{p}}
	f.legend = []key{glyphKey(best.Running(), ring(ink)), glyphKey(best.Title(), disc(blue))}
	was, is := quantity.Decimals(now.XYs[worst].Y, 2), quantity.Decimals(placed.XYs[worst].Y, 2)
	goes := "goes from " + was + " to"
	if was == is {
		goes = "stays at"
	}
	f.Title = fmt.Sprintf("%d of %s improve; the worst, layer %d, %s %s × the mean", lower,
		quantity.Count(len(layers), "layer"), layers[worst], goes, is)
	f.Caption = fmt.Sprintf("Load of the busiest of %s over the mean, by layer; mean over steps and windows.",
		quantity.Count(best.Ranks, "rank"))
	return f
}
