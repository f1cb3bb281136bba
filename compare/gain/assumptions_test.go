package gain

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What no design covers is warned of when the data show it, and seldom when they do not.
func TestAssumptionsAreChecked(t *testing.T) {
	const trials = 300
	for name, c := range map[string]struct {
		check       string
		pairs       int
		spoil       func(rng *rand.Rand, launches []Measurement)
		least, most float64 // share of campaigns with the warning
	}{
		"noise alone, outliers": {CheckOutliers, 8, nil, 0, 0.05},
		"noise alone, repeats":  {CheckRepeats, 8, nil, 0, 0.07},
		"noise alone, carry":    {CheckCarryOver, 8, nil, 0, 0.09},
		"an outlier in one arm": {CheckOutliers, 8, func(_ *rand.Rand, l []Measurement) { l[5].Value *= 0.8 }, 0.95, 1},
		"carry-over of one arm": {CheckCarryOver, 12, func(_ *rand.Rand, l []Measurement) {
			for i := 1; i < len(l); i++ {
				if l[i-1].Arm == Perfect && l[i].Arm == Normal {
					l[i].Value *= 0.95
				}
			}
		}, 0.6, 1},
		"gains that drift": {CheckRepeats, 20, func(rng *rand.Rand, l []Measurement) {
			last := rng.NormFloat64()
			for i := range l {
				if i%2 == 0 {
					last = 0.8*last + 0.6*rng.NormFloat64()
				}
				if l[i].Arm == Perfect {
					l[i].Value *= math.Exp(0.05 * last)
				}
			}
		}, 0.5, 1},
	} {
		rng := rand.New(rand.NewPCG(12, 1))
		warned := 0
		for range trials {
			launches := paired(make([]float64, c.pairs)...)
			for i := range launches {
				launches[i].Value *= math.Exp(0.01 * rng.NormFloat64())
			}
			if c.spoil != nil {
				c.spoil(rng, launches)
			}
			if check(t, Judge(valid(launches)), c.check).Status == Warn {
				warned++
			}
		}
		if share := float64(warned) / trials; share < c.least || share > c.most {
			t.Errorf("%s: warned of in %.2f of the campaigns, want %.2f to %.2f", name, share, c.least, c.most)
		}
	}
}

// A gain below the threshold that slow launches of one arm lift above it decides nothing.
func TestVerdictOnOutliers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, slow := range []int{0, 6} {
		gains := make([]float64, 20)
		for i := range gains {
			gains[i] = 0.08
		}
		launches := paired(gains...)
		for i := range launches {
			launches[i].Value *= math.Exp(0.005 * rng.NormFloat64())
			if launches[i].Arm == Normal && launches[i].Unit%3 == 0 && launches[i].Unit/3 < slow {
				launches[i].Value *= 0.7
			}
		}
		r, want := Judge(valid(launches)), NotSignificant
		if slow > 0 {
			want = Inconclusive
		}
		if r.Verdict != want || (len(r.Leading()) > 0) != (slow > 0) {
			t.Errorf("%d slow launches: %s, caveats %v; want %s", slow, r.Verdict, r.Leading(), want)
		}
	}
}
