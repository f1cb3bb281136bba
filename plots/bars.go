package plots

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router/quantity"
)

// BarSpec is what grouped bars show: one group per rank or layer, one bar per
// series, that is per arm.
type BarSpec struct {
	Name, Title, Caption string
	GroupLabel           string // "rank" or "layer"
	ValueLabel           string // the quantity without its unit: "expert time per step"
	Groups               []int  // the number of each group
	Series               []BarSeries
	Nanoseconds          bool // values are times, and the axis gets the unit that fits
	Unit                 string
	Mean                 bool // draw the mean of each series, and its floor
}

// BarSeries is one value per group; NaN draws no bar. Floor is the least that
// the largest bar could be with this total, in the same unit; NaN where no such
// floor is known.
type BarSeries struct {
	Name   string
	Values []float64
	Floor  float64
}

// BarChart draws the bars from zero. With Mean, a dashed line shows what every
// group would have if the series were even, and a dotted one the floor. Values
// must not be negative; without a known value the error wraps ErrNothing.
func BarChart(s BarSpec) (Figure, error) {
	f := Figure{Name: s.Name, Title: s.Title, Caption: s.Caption, height: 240}
	lists := make([][]float64, len(s.Series))
	any := false
	for i, series := range s.Series {
		any = any || len(knowns(series.Values)) > 0
		lists[i] = append([]float64{series.Floor}, series.Values...)
	}
	if !any {
		return Figure{}, fmt.Errorf("bars %q: %w: want at least one value", s.Name, ErrNothing)
	}
	unit := quantity.Unit{Name: s.Unit, Per: 1}
	if s.Nanoseconds {
		unit = quantity.TimeUnit(largest(lists...))
	}
	p := newPanel("", s.GroupLabel, s.ValueLabel+" ("+unit.Name+")")
	p.X.Tick.Marker = indexTicks{s.Groups, 24}
	p.Y.Tick.Marker = valueTicks{6, ""}
	p.Y.Min, p.Y.Max = 0, headroom(largest(lists...)/unit.Per)
	p.Add(rules{}, &bars{places(len(s.Groups)), s.Series, unit.Per, s.Mean})
	f.panels = [][]*plot.Plot{{p}}
	f.legend = barLegend(s)
	return f, nil
}

// headroom is the top of an axis that starts at 0; 1 for nothing but zeros.
func headroom(most float64) float64 {
	if most <= 0 {
		return 1
	}
	return most * 1.06
}

func barLegend(s BarSpec) []key {
	var keys []key
	floor := false
	for i, series := range s.Series {
		if len(knowns(series.Values)) > 0 && (len(s.Series) > 1 || series.Name != OneTrace) {
			keys = append(keys, fillKey(series.Name, armColor(series.Name, i)))
		}
		floor = floor || known(series.Floor)
	}
	if s.Mean {
		keys = append(keys, lineKey("mean over "+s.GroupLabel+"s", meanLine(ink)))
		if floor {
			keys = append(keys, lineKey("floor of the largest", floorLine(ink)))
		}
	}
	return keys
}

func meanLine(c color.Color) draw.LineStyle  { return line(c, 1.2, 6, 3) }
func floorLine(c color.Color) draw.LineStyle { return line(c, 1.2, 1.5, 2) }

// bars draws the series side by side within each group.
type bars struct {
	places
	series []BarSeries
	per    float64
	mean   bool
}

// Plot implements plot.Plotter.
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	share := min(0.78, 0.3+0.06*float64(b.places)) // of a group; less of few, so that bars stay bars
	width := share / float64(len(b.series))
	for s, series := range b.series {
		for g, v := range series.Values {
			if !drawable(v) {
				continue
			}
			left := float64(g) - share/2 + float64(s)*width
			fillBox(c, armColor(series.Name, s), box(x(left), y(0), x(left+width), y(v/b.per)))
		}
	}
	if !b.mean {
		return
	}
	for s, series := range b.series {
		if m := mean(series.Values); drawable(m) {
			across{m / b.per, meanLine(shade(armColor(series.Name, s)))}.Plot(c, p)
		}
		if drawable(series.Floor) {
			across{series.Floor / b.per, floorLine(ink)}.Plot(c, p)
		}
	}
}

// shade is c, darkened so that a line shows on bars of its own color.
func shade(c color.NRGBA) color.NRGBA {
	dark := func(x uint8) uint8 { return uint8(float64(x) * 0.55) }
	return color.NRGBA{dark(c.R), dark(c.G), dark(c.B), 0xff}
}

// RankTimes is the time of each rank's expert kernels. A rank without a single such
// kernel is unknown, not idle.
func RankTimes(arms ...Arm) BarSpec {
	s := BarSpec{
		Name:       "rank-time",
		GroupLabel: "rank", ValueLabel: "expert time " + per(arms), Groups: ranks(arms), Nanoseconds: true, Mean: true,
		Caption: fmt.Sprintf(
			"%s. %s, observed, added over layers, mean over steps. %s",
			timedExtent(arms), expertTime(arms), cancels("rank", "layer to layer or step to step")),
	}
	for _, a := range arms {
		s.Series = append(s.Series, BarSeries{a.Name, a.spread(a.PerStep.ExpertsByRank(), s.Groups), nan})
	}
	s.Title = s.answer()
	return s
}

// cancels is the caveat of every figure that adds up steps before it compares.
func cancels(part, changes string) string {
	return fmt.Sprintf("A hot %s that changes from %s cancels here and shows in the imbalance per layer, which is "+
		"computed step by step.", part, changes)
}

// RankLoads is the recorded slots of each rank over all layers, and their floor.
func RankLoads(arms ...Arm) BarSpec {
	s := BarSpec{
		Name:       "rank-load",
		GroupLabel: "rank", ValueLabel: "load per recorded step", Groups: ranks(arms), Unit: "slots", Mean: true,
		Caption: fmt.Sprintf(
			"%s. Recorded slots of the experts of each rank, added over layers, mean over the recorded steps. The floor is "+
				"the least that the largest can be. %s",
			extent(arms), cancels("rank", "layer to layer or step to step")),
	}
	for _, a := range arms {
		slots, floor := a.PerStep.Load()
		s.Series = append(s.Series, BarSeries{a.Name, a.spread(slots, s.Groups), floor})
	}
	s.Title = s.answer()
	return s
}

// LayerLosses is what uneven expert time costs in every layer.
func LayerLosses(arms ...Arm) BarSpec {
	seen := map[int]bool{}
	for _, a := range arms {
		for _, s := range a.Trace.Stragglers {
			seen[int(s.Layer)] = true
		}
	}
	layers := sortedKeys(seen)
	at := position(layers)
	s := BarSpec{
		Name:       "layer-loss",
		GroupLabel: "layer", ValueLabel: "loss " + per(arms), Groups: layers, Nanoseconds: true,
		Caption: fmt.Sprintf("%s. %s of the slowest rank − mean over ranks, in each step, then the mean over steps.",
			timedExtent(arms), expertTime(arms)),
	}
	for _, a := range arms {
		values := unknowns(len(layers))
		for _, l := range a.Trace.Stragglers {
			loss := l.ExpertsLossNS
			if a.PerStep.Times.Of == imbalance.OfGEMM {
				loss = l.GEMMLossNS
			}
			values[at[int(l.Layer)]] = loss.Float64()
		}
		s.Series = append(s.Series, BarSeries{a.Name, values, nan})
	}
	s.Title = s.answer()
	return s
}

// LayerLoad is how uneven the recorded load over ranks is, by layer, of one record.
type LayerLoad struct {
	Name string
	Rows []imbalance.Row
}

// LayerLoads is the recorded load of the busiest rank of each layer over the mean rank's.
func LayerLoads(records ...LayerLoad) BarSpec {
	seen := map[int]bool{}
	for _, record := range records {
		for _, r := range record.Rows {
			seen[int(r.Layer)] = true
		}
	}
	s := BarSpec{Name: "layer-load", GroupLabel: "layer", ValueLabel: "load of the busiest rank", Unit: "× the mean",
		Groups: sortedKeys(seen), Caption: "Recorded load of each layer's busiest rank over that of the mean rank, in " +
			"each step, then the mean over steps."}
	at := position(s.Groups)
	var found findings
	for _, record := range records {
		values := unknowns(len(s.Groups))
		for _, r := range record.Rows {
			values[at[int(r.Layer)]] = r.MaxOverMean.Float64()
		}
		s.Series = append(s.Series, BarSeries{record.Name, values, nan})
		if most := largest(values); most > 0 {
			found.add(record.Name, fmt.Sprintf("layer %d is the most uneven, %s × the mean",
				s.Groups[slices.Index(values, most)], quantity.Decimals(most, 2)))
		}
	}
	s.Title = found.of(s.ValueLabel)
	return s
}

// RankLayerTimes is the heat map of expert time by layer and rank.
func RankLayerTimes(arms ...Arm) HeatSpec {
	columns, seen := ranks(arms), map[int]bool{}
	for _, a := range arms {
		for layer := range a.PerStep.ExpertsByLayer() {
			seen[layer] = true
		}
	}
	layers := sortedKeys(seen)
	s := HeatSpec{
		Name:     "rank-layer-time",
		RowLabel: "layer", ColumnLabel: "rank", Quantity: "time",
		Caption: fmt.Sprintf(
			"%s. %s, observed. Each cell is relative to the mean over ranks of its layer. %s",
			timedExtent(arms), expertTime(arms), cancels("rank", "step to step")),
	}
	for _, a := range arms {
		g := unknownGrid(a.Name, layers, columns)
		for layer, times := range a.PerStep.ExpertsByLayer() {
			g.Values[position(layers)[layer]] = a.spread(times, columns)
		}
		s.Grids = append(s.Grids, g)
	}
	s.Title = s.answer()
	return s
}

// value writes one bar's height.
func (s BarSpec) value(v float64) string {
	if s.Nanoseconds {
		return quantity.Duration(v)
	}
	return quantity.Digits4(v) + " " + s.Unit
}

// answer says in words what the bars show: the largest group of each series and its
// ratio to the mean.
func (s BarSpec) answer() string {
	var found findings
	for _, series := range s.Series {
		values := knowns(series.Values)
		if len(values) == 0 {
			found.add(series.Name, "nothing recorded")
			continue
		}
		most, mean := slices.Max(values), mean(values)
		switch {
		case mean > 0 && isEven(most/mean):
			found.add(series.Name, fmt.Sprintf("every %s has %s", s.GroupLabel, s.value(mean)))
		case mean > 0:
			found.add(series.Name, fmt.Sprintf("%s %d has most, %s, %s × the mean", s.GroupLabel,
				s.Groups[slices.Index(series.Values, most)], s.value(most), quantity.Decimals(most/mean, 2)))
		default:
			found.add(series.Name, "all zero")
		}
	}
	return found.of(s.ValueLabel)
}
