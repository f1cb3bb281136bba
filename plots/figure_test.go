package plots

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// wave is n positive values that differ, around level.
func wave(n int, level float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = level * (1 + 0.5*math.Sin(float64(3*i+1)))
	}
	return out
}

func waveGrid(name string, rows, columns int) Grid {
	g := Grid{Name: name}
	for i := range rows {
		g.Values = append(g.Values, wave(columns, float64(1000*(i+1))))
	}
	return g
}

// gallery is every kind of figure over the given numbers of ranks, layers,
// experts, steps and pairs.
func gallery(t *testing.T, ranks, layers, experts, steps int) []Figure {
	t.Helper()
	var out []Figure
	add := func(f Figure) { out = append(out, f) }
	words := "256 experts, top-8 & more <of> the same, to make a caption that is long enough to need a second line in every figure of this gallery."
	normal, perfect := waveGrid("normal", layers, experts), waveGrid("perfect", layers, experts)
	normal.Values[0][experts/2] = math.NaN()
	if experts == 1 {
		normal.Values[0][0] = 5
	}
	add(HeatMap(HeatSpec{Name: "heat", Title: "Which <experts>?", Caption: words, RowLabel: "layer",
		ColumnLabel: "expert", Quantity: "time", Rows: upTo(layers), Columns: upTo(experts),
		Grids: []Grid{normal, perfect}}))
	stack := func(name string) (s Stack) {
		s.Name = name
		for _, rank := range labels(upTo(ranks)) {
			bar := Bar{Name: rank}
			for i, of := range []string{"experts", "attention", "router", "dispatch", "combine", "other compute", "unknown",
				Transfer, Waiting, NoKernel} {
				bar.Add(of, wave(10, 1e6)[i])
			}
			s.Bars = append(s.Bars, bar)
		}
		return s
	}
	add(PhaseStacks(StackSpec{Name: "phases", Title: "Where?", Caption: words, Per: "per step",
		Arms: []Stack{stack("normal"), stack("perfect")}}))
	var pairs []gain.Unit
	for i, v := range wave(steps, 0.2) {
		pairs = append(pairs, gain.Unit{Pair: i, Values: gain.Values{Gain: router.Number(v), Status: gain.PairComplete}})
	}
	var points []gain.Comparison
	for i, v := range []float64{-0.05, 0.1, 0.2} {
		points = append(points, gain.Comparison{Name: "concurrency", Value: math.Pow(8, float64(i)),
			Gain: gain.Gain{Interval: gain.Interval{Estimate: router.Number(v), Low: router.Number(v - 0.02),
				High: router.Number(v + 0.02)}}})
	}
	whole := gain.Gain{Interval: gain.Interval{Estimate: 0.2, Low: 0.1, High: 0.3, Confidence: 0.95}}
	add(Gains(gain.Result{Head: gain.Head{Threshold: 0.1}, Points: points}, 0))
	add(Gains(gain.Result{Head: gain.Head{Threshold: 0.1}, Pairs: pairs, Gain: whole}, 0))
	layered := place.Result{Placements: []place.Placement{{Plan: place.Plan{Ranks: ranks}}}}
	for i := range max(2, layers) {
		at := router.Number(1 + float64(i)/10)
		layered.Layers = append(layered.Layers, place.Layer{Plan: place.Plan{Ranks: ranks}, Layer: i, Baseline: 2 * at, Judged: at})
	}
	add(PlacementLayers(&layered))
	return out
}

// Of layers that are equally bad now the title names the one that stays worst.
func TestWorstLayer(t *testing.T) {
	var r place.Result
	r.Placements = []place.Placement{{Plan: place.Plan{Ranks: 4}}}
	for layer, after := range []router.Number{1.1, 1.3, 1.2} {
		r.Layers = append(r.Layers, place.Layer{Plan: place.Plan{Ranks: 4}, Layer: layer, Baseline: 1.5, Judged: after})
	}
	f := PlacementLayers(&r)
	if want := "the worst, layer 1, goes from 1.50 to 1.30 "; !strings.Contains(f.Title, want) {
		t.Errorf("%q: want %q", f.Title, want)
	}
	r.Layers[2].Judged = 1.7 // its line ends there, and goes no further up
	if f = PlacementLayers(&r); math.Abs(f.panels[0][0].Y.Max-1.742) > 0.001 {
		t.Errorf("the scale ends at %v: want 6 %% above 1.7", f.panels[0][0].Y.Max)
	}
}

var sizes = []struct{ ranks, layers, experts, steps int }{{1, 1, 1, 1}, {4, 3, 32, 6}, {64, 61, 256, 100}}

// The same figure is the same bytes, and SVG is well-formed with nothing
// fetched from elsewhere.
func TestFigureBytes(t *testing.T) {
	for _, n := range sizes[:2] {
		twins := gallery(t, n.ranks, n.layers, n.experts, n.steps)
		for i, f := range gallery(t, n.ranks, n.layers, n.experts, n.steps) {
			again := twins[i]
			svg := render(t, f.SVG)
			if svg != render(t, again.SVG) {
				t.Errorf("%s: two renderings as SVG differ", f.Name)
			}
			checkXML(t, f.Name, svg)
			if n := strings.Count(svg, "http"); n != strings.Count(svg, "http://www.w3.org/") {
				t.Errorf("%s: the figure refers to something outside", f.Name)
			}
			if n.ranks == 1 || testing.Short() && f.Name != "phases" {
				continue // PNG takes most of the time, and one size of it is enough
			}
			pixels := render(t, f.PNG)
			if pixels != render(t, again.PNG) {
				t.Errorf("%s: two renderings as PNG differ", f.Name)
			}
			img := require.Value(png.Decode(strings.NewReader(pixels)))
			if w := img.Bounds().Dx(); w != 1600 { // 600 pt at 192 dpi
				t.Errorf("%s: PNG is %d pixels wide", f.Name, w)
			}
		}
	}
}

func render(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	return b.String()
}

func checkXML(t *testing.T, name, doc string) {
	t.Helper()
	if err := xml.Unmarshal([]byte(doc), new(struct{})); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// Every piece of horizontal text stays inside its figure and clear of every
// other, from one expert on one rank to 256 experts, 61 layers and 64 ranks.
func TestLabelsDoNotOverlap(t *testing.T) {
	sizes := sizes
	if testing.Short() {
		sizes = sizes[:2] // the largest takes seconds under the race detector
	}
	for _, n := range sizes {
		for _, f := range gallery(t, n.ranks, n.layers, n.experts, n.steps) {
			name := fmt.Sprintf("%s with %d ranks", f.Name, n.ranks)
			width, height := f.size(true)
			texts := horizontalText(f)
			if len(texts) < 4 {
				t.Errorf("%s: only %d texts", name, len(texts))
			}
			for i, a := range texts {
				if a.Min.X < 0 || a.Min.Y < 0 || a.Max.X > width || a.Max.Y > height {
					t.Errorf("%s: %q leaves the figure: %v of %g×%g", name, a.text, a.Rectangle, width, height)
				}
				for _, b := range texts[:i] {
					if a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y {
						t.Errorf("%s: %q overlaps %q", name, a.text, b.text)
					}
				}
			}
		}
	}
}

type placed struct {
	vg.Rectangle
	text string
}

// horizontalText draws the figure on a recorder and returns the boxes of its
// unrotated text. A box is as high as the capitals: 0.7 of the size.
func horizontalText(f Figure) (out []placed) {
	var rec recorder.Canvas
	w, h := f.size(true)
	f.draw(draw.NewCanvas(&rec, w, h), true)
	depth, rotated := 0, 0
	for _, a := range rec.Actions {
		switch a := a.(type) {
		case *recorder.Push:
			depth++
		case *recorder.Pop:
			depth--
			if depth < rotated {
				rotated = 0
			}
		case *recorder.Rotate:
			rotated = depth
		case *recorder.FillString:
			if rotated == 0 {
				style := textStyle(a.Size.Points(), ink)
				style.Font = a.Font
				width := style.Width(a.String)
				out = append(out, placed{box(a.Point.X, a.Point.Y, a.Point.X+width, a.Point.Y+a.Size*0.7), a.String})
			}
		}
	}
	return out
}

func TestNothingToDraw(t *testing.T) {
	holes := HeatSpec{Rows: []int{0}, Columns: []int{0}, Grids: []Grid{{Values: [][]float64{{nan}}}}}
	undefined := gain.Comparison{Value: 1, Gain: gain.Gain{Interval: gain.Interval{Estimate: router.Undefined()}}}
	half := gain.Unit{Values: gain.Values{Gain: 0.1, Status: gain.PairIncomplete}}
	for name, f := range map[string]Figure{
		"only holes": HeatMap(holes), "no trace's heat": HeatMap(ExpertTimes()), "no phases": PhaseStacks(StackSpec{}),
		"idle ranks": PhaseStacks(StackSpec{Arms: []Stack{{Bars: []Bar{{Name: "0"}}}}}), "no pairs": Gains(gain.Result{}, 0),
		"no curve":              Gains(gain.Result{Points: []gain.Comparison{undefined}}, 0),
		"only incomplete pairs": Gains(gain.Result{Pairs: []gain.Unit{half}}, 0),
		"no placement":          PlacementLayers(&place.Result{Placements: []place.Placement{{}}}),
	} {
		if !f.Empty() {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// What a broken file holds is not drawn.
func TestPartsOfABar(t *testing.T) {
	var bar Bar
	for _, ns := range []float64{nan, -1, 0, math.Inf(1), 2} {
		bar.Add(Transfer, ns)
	}
	if want := []part{{Transfer, 2}}; !slices.Equal(bar.parts, want) {
		t.Errorf("%v, want %v", bar.parts, want)
	}
}
