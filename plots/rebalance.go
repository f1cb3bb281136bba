package plots

import (
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// mostTicks is the most windows whose numbers have room below an axis.
const mostTicks = 24

// overTime draws the load of the busiest rank over the windows in order: as placed now, where
// that is placed anew before each, and the chosen way, with its moves marked.
func overTime(res *place.Result) (Figure, error) {
	f := Figure{Name: "placement-rebalance"}
	r := res.Rebalance
	if r == nil {
		return f, fmt.Errorf("load over time: %w: want ways of rebalancing", ErrNothing)
	}
	chosen := r.ChosenWay()
	p := newPanel("", "window", "max/mean of load over ranks")
	p.Add(rules{})
	top := 1.0
	moves := &uprights{style: line(wine, 0.9, 2, 2)}
	for i, w := range []struct {
		name  string
		style draw.LineStyle
	}{{place.Never, line(softInk, 1.2, 1, 2)}, {place.Always, line(orange, 1.2, 5, 3)}, {chosen.Name, line(blue, 1.6)}} {
		s := &series{style: w.style, glyph: draw.CircleGlyph{}}
		if i < 2 && w.name == chosen.Name {
			continue
		}
		for _, x := range r.Served {
			if x.Way == w.name && (x.Way == place.Never || x.Learns == chosen.Learns || chosen.Name == place.Never) {
				if i == 2 && x.MovedShare > 0 {
					moves.at = append(moves.at, float64(len(s.at))+0.5) // before the window
				}
				s.add(float64(len(s.at)+1), x.MaxOverMean)
			}
		}
		if len(s.at) == 0 {
			continue
		}
		top = largest([]float64{top}, s.y)
		p.Add(s)
		f.legend = append(f.legend, lineKey(w.name, s.style))
	}
	if len(moves.at) > 0 {
		p.Add(moves)
		f.legend = append(f.legend, lineKey("experts move", moves.style))
	}
	var ticks valueNames
	for i := 1; i <= r.Windows; i += (r.Windows + mostTicks - 1) / mostTicks {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: strconv.Itoa(i)})
	}
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0.5, float64(r.Windows)+0.5, ticks
	fromOne(p, top)
	f.arrange([]*plot.Plot{p}, false, 240)
	f.Title = fmt.Sprintf("Busiest rank, placing anew %s: %s × the mean; never: %s", chosen.Name,
		quantity.Decimals(chosen.MaxOverMean, 2), quantity.Decimals(r.Ways[0].MaxOverMean, 2))
	f.Caption = fmt.Sprintf("%s on %s, %s. A placement serves a window that comes after all that it was learned from. "+
		"Mean over steps and layers.", quantity.Count(res.Experts, "expert"), quantity.Count(chosen.Ranks, "rank"),
		quantity.Count(chosen.Redundant, "redundant expert"))
	return f, nil
}

// byMoves draws the max/mean that so many moves from the running placement reach.
func byMoves(res *place.Result) (Figure, error) {
	best := res.Best()
	f := Figure{Name: "placement-moves"}
	own, held, afresh := wayLines(res.Curve, best.Plan)
	knee, most := router.Undefined(), router.Number(0)
	for _, q := range res.Curve {
		if q.Plan == best.Plan {
			most = max(most, q.MovedShare)
		}
		if q.Plan == best.Plan && q.Knee {
			knee = q.MovedShare
		}
	}
	if len(own.at) < 2 {
		return f, fmt.Errorf("moves: %w: want two placements on the way", ErrNothing)
	}
	p := newPanel("", "copies moved", "max/mean of load over ranks")
	p.Add(rules{}, own)
	f.legend = []key{lineKey("learned windows", own.style)}
	if len(held.at) > 0 {
		p.Add(held)
		f.legend = append(f.legend, lineKey("judged windows", held.style))
	}
	if len(afresh.at) > 0 {
		p.Add(afresh)
		f.legend = append(f.legend, glyphKey("learned afresh", draw.GlyphStyle{Color: wine, Radius: 2.5,
			Shape: afresh.glyph}))
	}
	if knee.Defined() {
		at := &uprights{[]float64{100 * knee.Float64()}, line(softInk, 1, 2, 2)}
		p.Add(at)
		f.legend = append(f.legend, lineKey("knee: "+quantity.Percent(knee), at.style))
	}
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, 105*most.Float64(), valueTicks{8, " %"}
	fromOne(p, largest([]float64{1}, own.y, held.y, afresh.y))
	f.arrange([]*plot.Plot{p}, false, 240)
	shown := held.or(own)
	f.Title = fmt.Sprintf("Moving up to %s of the copies takes the busiest rank from %s to %s × the mean",
		quantity.Percent(most), quantity.Decimals(shown.y[0], 2), quantity.Decimals(slices.Min(shown.y), 2))
	f.Caption = fmt.Sprintf("Swaps from %s on, each the one that evens the learned windows most; %s. "+
		"Mean over steps, layers and windows.", best.Running(), quantity.Count(best.Redundant, "redundant expert"))
	return f, nil
}

// wayLines are max/mean over the percentage of copies moved: on the way as learned and as judged,
// and of what is learned afresh.
func wayLines(curve []place.Point, of place.Plan) (own, held, afresh *series) {
	own, held = &series{style: line(blue, 1.2, 5, 3), glyph: draw.PyramidGlyph{}},
		&series{style: line(blue, 1.6), glyph: draw.CircleGlyph{}}
	afresh = &series{style: line(wine, 0, 0), glyph: draw.BoxGlyph{}}
	for _, q := range curve {
		percent := 100 * q.MovedShare.Float64()
		switch {
		case q.Plan != of:
		case !q.Afresh:
			own.add(percent, q.Learned)
			held.add(percent, q.Judged)
		case q.Judged.Defined():
			afresh.add(percent, q.Judged)
		default:
			afresh.add(percent, q.Learned)
		}
	}
	return own, held, afresh
}
