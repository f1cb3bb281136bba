package plots

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Placement is the figures of judged placements that have something to draw: the
// replication curve of a sweep, the matrix of windows, and the load per rank before and
// after.
func Placement(res *place.Result) (figures []Figure, err error) {
	for _, draw := range []func(*place.Result) (Figure, error){replication, windowMatrix, rankLoads} {
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

// series is a line of points, with intervals where they are known.
type series struct {
	name      string
	at, y     []float64
	low, high []float64 // as y, or nil
	style     draw.LineStyle
	glyph     draw.GlyphStyle
}

// Plot implements plot.Plotter. Unknown points break the line.
func (s *series) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var run []vg.Point
	flush := func() {
		if len(run) > 1 {
			c.StrokeLines(s.style, run)
		}
		run = nil
	}
	for i, v := range s.y {
		if !known(v) {
			flush()
			continue
		}
		at := vg.Point{X: x(s.at[i]), Y: y(v)}
		if s.low != nil && known(s.low[i]) && known(s.high[i]) {
			c.StrokeLine2(line(s.style.Color, 1.2), at.X, y(s.low[i]), at.X, y(s.high[i]))
		}
		c.DrawGlyphNoClip(s.glyph, at)
		run = append(run, at)
	}
	flush()
}

// replication draws max/mean and predicted time against redundant experts, from two
// placements of an EP size on.
func replication(res *place.Result) (Figure, error) {
	f := Figure{Name: "replication", Title: "How many redundant experts?"}
	load, time := newPanel("", "redundant experts", "max/mean of load over ranks"), newPanel("", "redundant experts", "predicted change")
	load.Add(rules{})
	time.Add(rules{})
	ranks, redundant := sweep(res)
	if len(redundant) < 2 {
		return f, fmt.Errorf("replication curve: %w: want two numbers of redundant experts", ErrNothing)
	}
	top, low, high, of := 1.0, 0.0, 0.0, ""
	for i, n := range ranks {
		col := seriesColor(i)
		point := draw.GlyphStyle{Color: col, Radius: 2.5, Shape: draw.CircleGlyph{}}
		held := &series{name: "judged", style: line(col, 1.6), glyph: point}
		own := &series{name: "learned", style: line(col, 1.2, 5, 3), glyph: draw.GlyphStyle{Color: col, Radius: 2.5, Shape: draw.PyramidGlyph{}}}
		flat := &series{name: "contiguous", style: line(col, 1.2, 1, 2), glyph: draw.GlyphStyle{Color: col, Radius: 1, Shape: draw.CircleGlyph{}}}
		saved := &series{style: line(col, 1.6), glyph: point}
		for _, p := range res.Placements {
			if p.Ranks != n {
				continue
			}
			at := float64(p.Redundant)
			for _, s := range []struct {
				*series
				v router.Number
			}{{held, p.Judged}, {own, p.Learned}, {flat, p.Contiguous}} {
				s.at, s.y = append(s.at, at), append(s.y, s.v.Float64())
				top = max(top, largest([]float64{s.v.Float64()}))
			}
			if t := p.Time; t != nil {
				of = t.Of
				saved.at, saved.y = append(saved.at, at), append(saved.y, 100*t.Estimate.Float64())
				saved.low, saved.high = append(saved.low, 100*t.Low.Float64()), append(saved.high, 100*t.High.Float64())
				low, high = min(low, 100*t.Low.Float64()), max(high, 100*t.High.Float64())
			}
		}
		load.Add(flat, own, held)
		time.Add(saved)
		for _, s := range []*series{held, own, flat} {
			f.legend = append(f.legend, lineKey(fmt.Sprintf("%s, EP%d", s.name, n), s.style))
		}
	}
	panels := []*plot.Plot{load}
	load.Y.Min, load.Y.Max, load.Y.Tick.Marker = 1, 1+headroom(top-1), valueTicks{6, ""}
	if of != "" {
		time.Y.Label.Text += " of " + of
		time.Y.Min, time.Y.Max, time.Y.Tick.Marker = low*1.08, max(high*1.08, 0.5), valueTicks{6, " %"}
		panels = append(panels, time)
	}
	for _, p := range panels {
		first, last := float64(redundant[0]), float64(redundant[len(redundant)-1])
		p.X.Min, p.X.Max, p.X.Tick.Marker = first-(last-first)*0.05, last+(last-first)*0.05, numbered(redundant)
	}
	f.arrange(panels, false, 240)
	f.Caption = fmt.Sprintf("EPLB on %s. Learned: on the windows it was learned from. Judged: on %s that it was not. Mean over steps, layers and windows.", quantity.Count(res.Experts, "expert"), quantity.Count(len(res.Judged), "window"))
	if of != "" {
		f.Caption += " Time is inferred by a fitted cost; bars are the range over judged windows and fits."
	}
	f.Alt = PlacementAnswer(res)
	return f, nil
}

// sweep lists the EP sizes and the redundant experts, ascending.
func sweep(res *place.Result) (ranks, redundant []int) {
	for _, p := range res.Placements {
		ranks, redundant = append(ranks, p.Ranks), append(redundant, p.Redundant)
	}
	slices.Sort(ranks)
	slices.Sort(redundant)
	return slices.Compact(ranks), slices.Compact(redundant)
}

// numbered are ticks at the numbers.
func numbered(at []int) (ticks valueNames) {
	for _, n := range at {
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: strconv.Itoa(n)})
	}
	return ticks
}

// PlacementAnswer is what the placement that judges best does, in words.
func PlacementAnswer(res *place.Result) string {
	p := res.Best()
	return fmt.Sprintf("%s: %s on %s: %s.", p.Verdict, quantity.Count(p.Redundant, "redundant expert"), quantity.Count(p.Ranks, "rank"), p.Reason)
}

// mostWindows is how many windows a side the matrix has room for numbers in its cells.
const mostWindows = 12

// windowMatrix is max/mean of the best placement, learned on the row and judged on the
// column.
func windowMatrix(res *place.Result) (Figure, error) {
	best, m := res.Best(), &cells{top: 1}
	f := Figure{Name: "placement-matrix", Title: "Does a placement hold on other windows?"}
	var names []string
	at := map[string]int{}
	for _, w := range slices.Concat(res.Learned, res.Judged) {
		at[w.Name] = len(names)
		names = append(names, fmt.Sprintf("%d  %s", len(names)+1, shortest(filepath.Base(w.Name), 34)))
	}
	if len(res.Matrix) == 0 || len(names) > mostWindows {
		return f, fmt.Errorf("placement matrix: %w: want 2 to %d windows, have %d", ErrNothing, mostWindows, len(names))
	}
	var columns, rows valueNames
	for i, name := range names {
		m.values = append(m.values, unknowns(len(names)))
		columns, rows = append(columns, plot.Tick{Value: float64(i), Label: strconv.Itoa(i + 1)}), append(rows, plot.Tick{Value: float64(i), Label: name})
	}
	for _, c := range res.Matrix {
		if c.Plan == best.Plan {
			m.values[at[c.Learned]][at[c.Judged]] = c.MaxOverMean.Float64()
			m.top = max(m.top, largest([]float64{c.MaxOverMean.Float64()}))
		}
	}
	p := newPanel("", "judged on window", "learned on")
	p.X.Tick.Marker, p.Y.Tick.Marker = columns, rows
	p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
	p.Add(m)
	f.arrange([]*plot.Plot{p}, true, vg.Length(70+26*len(names)))
	f.Caption = fmt.Sprintf("max/mean of load over %s with %s, mean over steps and layers. The diagonal is what a placement promises on its own counts.", quantity.Count(best.Ranks, "rank"), quantity.Count(best.Redundant, "redundant expert"))
	f.Alt = PlacementAnswer(res)
	return f, nil
}

// shortest cuts a long name.
func shortest(name string, most int) string {
	if letters := []rune(name); len(letters) > most {
		return "…" + string(letters[len(letters)-most:])
	}
	return name
}

// cells are numbers on a field that is the darker the further they are above 1.
type cells struct {
	values [][]float64
	top    float64
}

// DataRange implements plot.DataRanger.
func (m *cells) DataRange() (xmin, xmax, ymin, ymax float64) {
	n := float64(len(m.values)) - 0.5
	return -0.5, n, -0.5, n
}

// Plot implements plot.Plotter.
func (m *cells) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	sty := textStyle(textSize, ink)
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YCenter
	for i, row := range m.values {
		for j, v := range row {
			ground := color.Color(paper)
			if known(v) && m.top > 1 {
				ground = tint(vermillion, 0.75*math.Max(0, v-1)/(m.top-1))
			}
			fillBox(c, ground, box(x(float64(j)-0.5), y(float64(i)+0.5), x(float64(j)+0.5), y(float64(i)-0.5)))
			c.FillText(sty, vg.Point{X: x(float64(j)), Y: y(float64(i)) + textRise}, quantity.Ratio(v))
		}
	}
}

// rankLoads is the load of each rank in each layer with contiguous experts and with the
// best placement, on the judged windows.
func rankLoads(res *place.Result) (Figure, error) {
	best := res.Best()
	s := HeatSpec{Name: "placement-load", Title: "How even are the ranks, before and after?", RowLabel: "layer", ColumnLabel: "rank", Quantity: "load"}
	var ranks, layers []int
	for r := range best.Ranks {
		ranks = append(ranks, r)
	}
	var before, after [][]float64
	for _, l := range res.Layers {
		if l.Plan == best.Plan && len(l.ContiguousRanks) == len(ranks) && len(l.JudgedRanks) == len(ranks) {
			layers, before, after = append(layers, l.Layer), append(before, floatsOf(l.ContiguousRanks)), append(after, floatsOf(l.JudgedRanks))
		}
	}
	s.Grids = []Grid{{Name: "contiguous", Rows: layers, Columns: ranks, Values: before}, {Name: "EPLB", Rows: layers, Columns: ranks, Values: after}}
	s.Caption = fmt.Sprintf("Load over %s, contiguous and with %s, added over steps, mean over %s. Each cell is relative to the mean of its layer.", quantity.Count(best.Ranks, "rank"), quantity.Count(best.Redundant, "redundant expert"), quantity.Count(len(res.Judged), "judged window"))
	s.Alt = s.answer()
	return HeatMap(s)
}

func floatsOf(numbers []router.Number) (out []float64) {
	for _, n := range numbers {
		out = append(out, n.Float64())
	}
	return out
}
