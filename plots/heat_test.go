package plots

import (
	"image/color"
	"math"
	"strings"
	"testing"
)

// upTo is 0, 1, … n−1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// balanced is a grid whose rows are even, up to noise of one part in a million,
// at different levels.
func balanced() Grid {
	g := Grid{Name: "perfect", Rows: []int{3, 4, 5}, Columns: upTo(8)}
	for i := range g.Rows {
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
	f, err := HeatMap(HeatSpec{Name: "heat-balanced", Title: "Even", Quantity: "time", Grids: []Grid{balanced()}})
	if err != nil {
		t.Fatal(err)
	}
	svg := render(t, f.SVG)
	if strings.Count(svg, "<text") != strings.Count(svg, "'Liberation Sans',Arial") {
		t.Error("a text has no typeface to fall back on")
	}
	grid := balanced()
	grid.Values[2][7] = math.NaN()
	img := (&heat{cells: grid.RelativeToRow(), colors: heatColors(), scale: scale{span: 0.1}}).image()
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
	for v, want := range map[float64]int{0: 0, 0.5: 10, 1: 20, 1.01: 20, 1.03: 21, 1.5: 30, 2: 40, 17: 40,
		math.Inf(1): unknownLevel} {
		if got := (&heat{scale: scale{span: 1}}).level(v); got != want {
			t.Errorf("level(%g) = %d, want %d of %d", v, got, want, heatLevels)
		}
	}
	for v, want := range map[float64]int{0: 0, 0.9: 0, 0.95: 10, 1: 20, 1.1: 40, 3: 40} {
		if got := (&heat{scale: scale{span: 0.1}}).level(v); got != want {
			t.Errorf("of 10 %% to both sides, level(%g) = %d, want %d", v, got, want)
		}
	}
	for v, want := range map[float64]int{0: 0, 1.0 / 16: 0, 0.25: 10, 1: 20, 4: 30, 12: 38, 16: 40} {
		if got := (&heat{scale: scale{16, true}}).level(v); got != want {
			t.Errorf("by factors up to 16, level(%g) = %d, want %d", v, got, want)
		}
	}
}

// The scale reaches as far as the data, to a round number; beyond 2 × mean by factors.
func TestScale(t *testing.T) {
	for most, want := range map[float64]float64{1: 0.1, 1.05: 0.1, 1.17: 0.2, 1.21: 0.3, 1.4: 0.5, 1.9: 1, 1.99: 1} {
		s := HeatSpec{Grids: []Grid{{Values: [][]float64{{most, 2 - most}}}, balanced()}}
		if got := s.scale(); got != (scale{span: want}) {
			t.Errorf("up to %g × mean the scale reaches %v to both sides, want %g", most, got, want)
		}
	}
	for zeros, want := range map[int]float64{2: 3, 3: 4, 11: 12, 12: 16, 400: 256} { // one of so many has all
		s := HeatSpec{Grids: []Grid{{Values: [][]float64{append(make([]float64, zeros), 1)}}}}
		if got := s.scale(); got != (scale{want, true}) {
			t.Errorf("up to %d × mean the scale is %v, want a factor of %g", zeros+1, got, want)
		}
	}
}

func TestRelativeToRow(t *testing.T) {
	nan := math.NaN()
	g := Grid{Values: [][]float64{{1, 2, 3}, {4, nan, 12}, {0, 0, 0}, {nan, nan, nan}}}
	// Means: 2; (4+12)/2 = 8; 0; none.
	want := [][]float64{{0.5, 1, 1.5}, {0.5, nan, 1.5}, {nan, nan, nan}, {nan, nan, nan}}
	for i, row := range g.RelativeToRow() {
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
	f, err := HeatMap(HeatSpec{Quantity: "time", Grids: []Grid{normal, perfect}})
	if n := len(render(t, f.WriteDrawing)); err != nil || n > 2e5 {
		t.Errorf("%d bytes, %v", n, err)
	}
}
