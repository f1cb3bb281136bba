package plots

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Placement is the figures of judged placements that have something to draw: load over time,
// the way of few moves, the load of each layer before and after, the replication curve of a sweep,
// and the load per rank on windows not seen.
func Placement(res *place.Result) (figures []Figure, err error) {
	if len(res.Placements) == 0 {
		return nil, nil
	}
	for _, draw := range []func(*place.Result) (Figure, error){overTime, byMoves, layerLoads, replication, unseenLoads} {
		f, e := draw(res)
		switch {
		case e == nil:
			figures = append(figures, f)
		case !errors.Is(e, ErrNothing):
			err = errors.Join(err, e)
		}
	}
	return figures, err
}

// replication draws max/mean and predicted time against redundant experts, from two
// numbers of them on.
func replication(res *place.Result) (Figure, error) {
	f := Figure{Name: "replication"}
	judged := "No window was left to judge on."
	if len(res.Judged) > 0 {
		judged = "Judged: on " + quantity.Count(len(res.Judged), "window") + " that it was not."
	}
	f.Caption = fmt.Sprintf(
		"Placements of %s. Learned: on the windows it was learned from. %s Mean over steps, layers and windows.",
		quantity.Count(res.Experts, "expert"), judged)
	load, time := newPanel("", "redundant experts", "max/mean of load over ranks"),
		newPanel("", "redundant experts", "predicted change of ")
	byRanks, ticks := sweep(res)
	if len(ticks) < 2 {
		return f, fmt.Errorf("replication curve: %w: want two numbers of redundant experts", ErrNothing)
	}
	load.Add(rules{})
	time.Add(rules{})
	top, low, high, of := 1.0, 0.0, 0.5, ""
	for i, n := range sortedKeys(byRanks) {
		l := linesOf(byRanks[n], armColor("", i))
		of = cmp.Or(l.of, of)
		if n == res.Best().Ranks {
			shown := l.judged.or(l.learned)
			last := len(shown.at) - 1
			f.Title = fmt.Sprintf("Busiest rank: %s × the mean with %s, %s with %s", quantity.Decimals(shown.y[0], 2),
				quantity.Count(int(shown.at[0]), "redundant expert"), quantity.Decimals(shown.y[last], 2),
				quantity.Plain(shown.at[last]))
		}
		top, low, high = largest([]float64{top}, l.judged.y, l.learned.y, l.before.y), slices.Min(append(l.time.low, low)),
			largest([]float64{high}, l.time.high)
		// beside those of other EP sizes
		floats.AddConst(float64(i)*0.012*(ticks[len(ticks)-1].Value-ticks[0].Value), l.time.at)
		load.Add(l.before, l.learned, l.judged)
		time.Add(l.time)
		f.legend = append(f.legend, l.keys(n)...)
	}
	panels := []*plot.Plot{load}
	fromOne(load, top)
	if of != "" {
		time.Y.Label.Text += of
		time.Y.Min, time.Y.Max, time.Y.Tick.Marker = low*1.08, high*1.08, valueTicks{6, " %"}
		panels = append(panels, time)
		f.Caption += " Time is inferred by a fitted cost; bars are its interval."
	}
	for _, p := range panels {
		first, last := ticks[0].Value, ticks[len(ticks)-1].Value
		p.X.Min, p.X.Max, p.X.Tick.Marker = first-(last-first)*0.05, last+(last-first)*0.05, ticks
	}
	f.arrange(panels, false, 240)
	return f, nil
}

// sweep is the placements by their number of ranks, and the numbers of redundant experts.
func sweep(res *place.Result) (byRanks map[int][]place.Placement, redundant valueNames) {
	byRanks = map[int][]place.Placement{}
	for _, p := range res.Defaults() {
		if byRanks[p.Ranks] = append(byRanks[p.Ranks], p); p.Ranks == res.Placements[0].Ranks {
			redundant = append(redundant, plot.Tick{Value: float64(p.Redundant), Label: strconv.Itoa(p.Redundant)})
		}
	}
	return byRanks, redundant
}

// copiesLines are what redundant experts do at one number of ranks.
type copiesLines struct {
	judged, learned, before *series // max/mean of load
	time                    *series // its predicted change in percent
	of                      string  // what that is the time of, empty where none is predicted
}

func linesOf(placements []place.Placement, c color.Color) copiesLines {
	l := copiesLines{
		judged:  &series{style: line(c, 1.6), glyph: draw.CircleGlyph{}},
		learned: &series{style: line(c, 1.2, 5, 3), glyph: draw.PyramidGlyph{}},
		before:  &series{style: line(c, 1.2, 1, 2), glyph: draw.CrossGlyph{}},
		time:    &series{style: line(c, 1.6), glyph: draw.CircleGlyph{}},
	}
	for _, p := range placements {
		at := float64(p.Redundant)
		l.judged.add(at, p.Judged)
		l.learned.add(at, p.Learned)
		l.before.add(at, p.Baseline)
		if t := p.Time; t != nil && (t.Estimate + t.Low + t.High).Defined() {
			l.of = t.Of
			l.time.bounded(at, 100*t.Estimate.Float64(), 100*t.Low.Float64(), 100*t.High.Float64())
		}
	}
	return l
}

// keys are those of the lines of load, which are of so many ranks.
func (l copiesLines) keys(ranks int) (keys []key) {
	for _, s := range []struct {
		name string
		*series
	}{{"judged", l.judged}, {"learned", l.learned}, {"before", l.before}} {
		if len(s.at) > 0 {
			keys = append(keys, lineKey(fmt.Sprintf("%s, EP%d", s.name, ranks), s.style))
		}
	}
	return keys
}

// layerLoads is the load of the busiest rank of each layer, as placed now and by the best placement.
func layerLoads(res *place.Result) (Figure, error) {
	best := res.Best()
	f := Figure{Name: "placement-layers", height: 240}
	now, placed, falls := &series{style: line(slate, 0), glyph: draw.RingGlyph{}},
		&series{style: line(blue, 0), glyph: draw.CircleGlyph{}}, &series{style: line(softInk, 0)}
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
		falls.bounded(at, after.Float64(), after.Float64(), l.Baseline.Float64())
		if after < l.Baseline {
			lower++
		}
		if now.y[worst] < l.Baseline.Float64() {
			worst = len(now.y) - 1
		}
	}
	if len(layers) == 0 {
		return f, fmt.Errorf("load by layer: %w: want a layer with a placement", ErrNothing)
	}
	p := newPanel("", "layer", "max/mean of load over ranks")
	p.X.Tick.Marker = indexTicks{layers, 24}
	fromOne(p, largest(now.y, placed.y))
	p.Add(rules{}, places(len(layers)), falls, now, placed)
	f.panels = [][]*plot.Plot{{p}}
	f.legend = []key{glyphKey(best.Running(), now.point()), glyphKey(best.Title(), placed.point())}
	f.Title = fmt.Sprintf("%d of %s improve; the worst, layer %d, goes from %s to %s × the mean", lower,
		quantity.Count(len(layers), "layer"), layers[worst], quantity.Decimals(now.y[worst], 2),
		quantity.Decimals(placed.y[worst], 2))
	f.Caption = fmt.Sprintf("Load of the busiest of %s in each layer, over the mean rank's, mean over steps and windows.",
		quantity.Count(best.Ranks, "rank"))
	return f, nil
}

// unseenLoads is that of the best placement on what it was learned from and on what it was not,
// in colors of its own, for both are far more even than what runs.
func unseenLoads(res *place.Result) (Figure, error) {
	best := res.Best()
	s := HeatSpec{Name: "placement-unseen"}
	s.Caption = fmt.Sprintf("Load over %s with %s, added over steps, mean over windows.",
		quantity.Count(best.Ranks, "rank"),
		quantity.Count(best.Redundant, "redundant expert"))
	return rankHeat(res, s,
		rankSide{quantity.Count(len(res.Learned), "learned window"),
			func(l place.Layer) []router.Number { return l.LearnedRanks }},
		rankSide{quantity.Count(len(res.Judged), "judged window"),
			func(l place.Layer) []router.Number { return l.JudgedRanks }})
}

// rankSide is a panel of rankHeat, with what it takes of a layer.
type rankSide struct {
	name string
	of   func(place.Layer) []router.Number
}

// rankHeat draws the layers of the best placement of which all sides are known.
func rankHeat(res *place.Result, s HeatSpec, sides ...rankSide) (Figure, error) {
	best := res.Best()
	s.RowLabel, s.ColumnLabel, s.Quantity = "layer", "rank", "load"
	s.Caption += " Each cell is relative to the mean of its layer."
	columns := make([]int, best.Ranks)
	for r := range columns {
		columns[r] = r
	}
	for _, side := range sides {
		g := Grid{Name: side.name, Columns: columns}
		for _, l := range res.Layers {
			if l.Plan == best.Plan && !slices.ContainsFunc(sides, func(o rankSide) bool { return len(o.of(l)) != best.Ranks }) {
				g.Rows, g.Values = append(g.Rows, l.Layer), append(g.Values, floatsOf(side.of(l)))
			}
		}
		s.Grids = append(s.Grids, g)
	}
	s.Title = s.answer()
	return HeatMap(s)
}

func floatsOf(numbers []router.Number) (out []float64) {
	for _, n := range numbers {
		out = append(out, n.Float64())
	}
	return out
}
