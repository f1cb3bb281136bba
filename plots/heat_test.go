package plots

import (
	"image/color"
	"math"
	"strings"
	"testing"
)

// upTo is 0, 1, … n−1.
func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// balanced is a grid whose rows are even, up to noise of one part in a million,
// at different levels.
func balanced() Grid {
	g := Grid{Name: "perfect"}
	for i := range 3 {
		row := make([]float64, 8)
		for j := range row {
			row[j] = 1e6 * float64(i+1) * (1 + 1e-6*float64(j%3))
		}
		g.Values = append(g.Values, row)
	}
	return g
}

// Perfect balance is a plain field: the scale does not stretch itself over
// noise, and layers of different cost look alike.
func TestBalancedHeatMapIsPlain(t *testing.T) {
	f := HeatMap(HeatSpec{Name: "heat-balanced", Title: "Even", Quantity: "time", Rows: upTo(3), Columns: upTo(8),
		Grids: []Grid{balanced()}})
	if svg := render(t, f.SVG); strings.Count(svg, "<text") != strings.Count(svg, "'Liberation Sans',Arial") {
		t.Error("a text has no typeface to fall back on")
	}
	grid := balanced()
	grid.Values[2][7] = math.NaN()
	img := (&heat{grid.relativeToRow(), 1.1}).image()
	seen := map[color.Color]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			seen[img.At(x, y)]++
		}
	}
	if all, hole := 200*8*266*3, 200*266; seen[heatStops[2]] != all-hole || seen[paper]+seen[waitInk] != hole || len(seen) != 3 {
		t.Errorf("pixels by color: %v", seen)
	}
}

func TestLevels(t *testing.T) {
	for span, levels := range map[float64]map[float64]int{
		1.1: {0: 0, 0.9: 0, 1: 20, 1.048809: 30, 1.1: 40, 3: 40},
		16:  {0: 0, 1.0 / 16: 0, 0.25: 10, 1: 20, 1.01: 20, 4: 30, 12: 38, 16: 40},
	} {
		for v, want := range levels {
			if got := (&heat{span: span}).level(v); got != want {
				t.Errorf("by factors up to %g, level(%g) = %d, want %d of %d", span, v, got, want, heatLevels)
			}
		}
	}
}

// The scale reaches as far as the data, to a round factor, and never to noise.
func TestSpan(t *testing.T) {
	for most, want := range map[float64]float64{1: 1.1, 1.05: 1.1, 1.17: 1.2, 1.21: 1.5, 1.9: 2, 1.99: 2} {
		s := HeatSpec{Grids: []Grid{{Values: [][]float64{{most, 2 - most}}}, balanced()}}
		if got := s.span(); got != want {
			t.Errorf("up to %g × mean the scale reaches %g, want %g", most, got, want)
		}
	}
	for zeros, want := range map[int]float64{2: 3, 3: 4, 11: 12, 12: 16, 400: 256} { // one of so many has all
		s := HeatSpec{Grids: []Grid{{Values: [][]float64{append(make([]float64, zeros), 1)}}}}
		if got := s.span(); got != want {
			t.Errorf("up to %d × mean the scale reaches %g, want %g", zeros+1, got, want)
		}
	}
}

func TestRelativeToRow(t *testing.T) {
	nan := math.NaN()
	g := Grid{Values: [][]float64{{1, 2, 3}, {4, nan, 12}, {0, 0, 0}, {nan, nan, nan}}}
	// Means: 2; (4+12)/2 = 8; 0; none.
	want := [][]float64{{0.5, 1, 1.5}, {0.5, nan, 1.5}, {nan, nan, nan}, {nan, nan, nan}}
	for i, row := range g.relativeToRow() {
		for j, v := range row {
			if v != want[i][j] && !(math.IsNaN(v) && math.IsNaN(want[i][j])) {
				t.Errorf("row %d column %d: %g, want %g", i, j, v, want[i][j])
			}
		}
	}
}

func TestTicks(t *testing.T) {
	if got := len((indexTicks{labels(upTo(256)), 17}).Ticks(0, 255)); got != 16 { // 256 in steps of 16
		t.Errorf("256 experts get %d labels, want 16", got)
	}
	if got := (indexTicks{[]string{"3", "4", "5"}, 17}).Ticks(0, 2); len(got) != 3 || got[2].Label != "5" {
		t.Errorf("three layers get %v, want 3, 4 and 5", got)
	}
	for want, ends := range map[string][2]float64{"0 2 4 6 8 10": {0, 10}, "0 0.1 0.2 0.3": {0, 0.35}, "0 5 10": {-0.3, 12},
		"−10 −5 0": {-12, 3}, "0 2e+11 4e+11 6e+11 8e+11 1e+12": {0, 1e12}} {
		var got []string
		for _, tick := range (valueTicks{}).Ticks(ends[0], ends[1]) {
			got = append(got, tick.Label)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %q, want %q", ends, got, want)
		}
	}
}

// Two arms of 61 layers and 256 experts on 64 ranks take less than 200 kB of a page.
func TestHeatMapsStaySmall(t *testing.T) {
	normal, perfect := waveGrid("normal", 61, 256), waveGrid("perfect", 61, 256)
	f := HeatMap(HeatSpec{Quantity: "time", Rows: upTo(61), Columns: upTo(256), Grids: []Grid{normal, perfect}})
	if n := len(render(t, f.WriteDrawing)); n > 2e5 {
		t.Errorf("%d bytes", n)
	}
}
