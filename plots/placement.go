package plots

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router/quantity"
)

// PlacementLayers draws the load of the busiest rank of each layer, as placed now and by the
// best placement, on windows that it was not learned from where there are any. Without such a
// layer the error wraps ErrNothing.
func PlacementLayers(res *place.Result) (Figure, error) {
	best := res.Best()
	f := Figure{Name: "placement-layers", height: chartHeight}
	now, placed, falls := &series{style: line(vermillion, 0), glyph: draw.RingGlyph{}, radius: pairRadius},
		&series{style: line(blue, 0), glyph: draw.CircleGlyph{}, radius: pairRadius}, &series{style: line(softInk, 0)}
	var layers []int
	worst, lower := 0, 0
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
		now.add(at, l.Baseline)
		placed.add(at, after)
		falls.bounded(at, after, after, l.Baseline)
		if after < l.Baseline {
			lower++
		}
		if now.y[worst] < l.Baseline.Float64() {
			worst = len(now.y) - 1
		}
	}
	if len(layers) == 0 {
		return f, fmt.Errorf("load by layer: %w: want at least one layer with a placement", ErrNothing)
	}
	p := newPanel("", "layer", "busiest rank (max/mean of load)")
	p.X.Tick.Marker = indexTicks{labels(layers), 24}
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 1, 1+headroom(largest(now.y, placed.y)-1), valueTicks{""}
	p.Add(rules{}, places(len(layers)), falls, now, placed)
	f.panels = []*plot.Plot{p}
	f.legend = []key{glyphKey(best.Running(), now.point()), glyphKey(best.Title(), placed.point())}
	f.Title = fmt.Sprintf("%d of %s improve; the worst, layer %d, goes from %s to %s × the mean", lower,
		quantity.Count(len(layers), "layer"), layers[worst], quantity.Decimals(now.y[worst], 2),
		quantity.Decimals(placed.y[worst], 2))
	f.Caption = fmt.Sprintf("Load of the busiest of %s in each layer, over the mean rank's, mean over steps and windows.",
		quantity.Count(best.Ranks, "rank"))
	return f, nil
}
