package plots

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// indexTicks labels positions 0…len(names)−1 with their names, thinned to a
// power of two so that at most `most` labels are written and none overlap.
type indexTicks struct {
	names []int
	most  int
}

// Ticks implements plot.Ticker.
func (t indexTicks) Ticks(_, _ float64) []plot.Tick {
	step := 1
	for (len(t.names)+step-1)/step > t.most {
		step *= 2
	}
	var out []plot.Tick
	for i := 0; i < len(t.names); i += step {
		out = append(out, plot.Tick{Value: float64(i), Label: strconv.Itoa(t.names[i])})
	}
	return out
}

// places is the range of an x axis of that many places, numbered from 0, each
// one wide. The chart sets y itself.
type places int

// DataRange implements plot.DataRanger.
func (n places) DataRange() (xmin, xmax, ymin, ymax float64) {
	return -0.5, float64(n) - 0.5, math.Inf(1), math.Inf(-1)
}

// valueTicks are multiples of 1, 2 or 5 times a power of ten, about `about` of
// them, written plainly (as powers of ten where that takes too much room) and
// with a suffix such as " %".
type valueTicks struct {
	about  int
	suffix string
}

// Plain numbers take too much room from this end of an axis on, and beyond these
// decimals.
const (
	manyDigits   = 1e8
	manyDecimals = 6
)

// Ticks implements plot.Ticker.
func (t valueTicks) Ticks(low, high float64) []plot.Tick {
	step, digits := niceStep((high - low) / float64(t.about))
	var out []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step; i++ {
		v := i*step + 0 // + 0 turns −0 into 0
		label := strconv.FormatFloat(v, 'f', digits, 64)
		if high >= manyDigits || digits > manyDecimals {
			label = strconv.FormatFloat(v, 'g', 3, 64)
		}
		out = append(out, plot.Tick{Value: v, Label: strings.Replace(label, "-", "−", 1) + t.suffix})
	}
	return out
}

// niceStep is the smallest of 1, 2, 5 × 10ᵏ that is not below the wanted step,
// and the decimals its multiples need. A step that is not positive becomes 1.
func niceStep(want float64) (step float64, digits int) {
	if !(want > 0) || math.IsInf(want, 0) {
		return 1, 0
	}
	power := math.Floor(math.Log10(want))
	for _, m := range []float64{1, 2, 5, 10} {
		if step = m * math.Pow(10, power); step >= want*(1-1e-9) {
			break
		}
	}
	return step, max(0, int(-math.Floor(math.Log10(step)+1e-9)))
}
