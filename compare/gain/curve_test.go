package gain

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// curve is a campaign at points, whose gains (fractions) are given, with a noise per launch.
func curve(rng *rand.Rand, pairs int, noise float64, values, gains []float64) Recorded {
	var launches []Measurement
	for i := range pairs {
		arms := []Arm{Normal, Perfect}
		if i/2%2 != i%2 {
			slices.Reverse(arms)
		}
		for _, arm := range arms {
			for j, v := range values {
				l := Measurement{Unit: i, Point: v, Arm: arm, Position: len(launches), Status: StatusOK,
					Value: 100 * math.Exp(noise*rng.NormFloat64())}
				if arm == Perfect {
					l.Value *= 1 + gains[j]
				}
				launches = append(launches, l)
			}
		}
	}
	c := valid(launches)
	c.PointName = "concurrency"
	c.Points = append(c.Points, values...)
	return c
}

// The point that leads: the one whose interval lies highest, without intervals the highest estimate; an undefined one
// never.
func TestLeading(t *testing.T) {
	none := router.Undefined()
	last := &comparison{Comparison: Comparison{Gain: Gain{Interval: Interval{Estimate: none, Low: none}}}}
	for _, b := range []Interval{{Estimate: 0.1, Low: none}, {Estimate: 0.2, Low: none},
		{Estimate: 0.3, Low: -0.2}, {Estimate: 0.1, Low: 0.05}} {
		one := &comparison{Comparison: Comparison{Gain: Gain{Interval: b}}}
		if leading([]*comparison{last, one}) != one || leading([]*comparison{one, last}) != one {
			t.Errorf("%+v before %+v", last.Gain, b)
		}
		last = one
	}
	open, below := &comparison{}, &comparison{}
	open.Verdict, open.Gain.Low, below.Verdict, below.Gain.Low = Inconclusive, -0.06, NotSignificant, -0.05
	if leading([]*comparison{below, open}) != open { // whose interval is why the campaign is inconclusive
		t.Error("a decided point leads an inconclusive campaign")
	}
}

func TestCurveJudgesEveryPoint(t *testing.T) {
	values, gains := []float64{1, 8, 64, 256}, []float64{-0.05, 0.02, 0.09, 0.2}
	r := Judge(curve(rand.New(rand.NewPCG(1, 1)), 8, 0.002, values, gains))
	want := []Verdict{NotSignificant, NotSignificant, NotSignificant, Significant}
	for i, p := range r.Points {
		if p.Name != "concurrency" || p.Value != values[i] || p.Verdict != want[i] ||
			math.Abs(float64(p.Gain.Estimate)-gains[i]) > 0.005 || p.Gain.N < 6 {
			t.Errorf("%+v, want %v and %s", p, gains[i], want[i])
		}
		if math.Abs(float64(p.Gain.Confidence)-0.9875) > 1e-12 {
			t.Errorf("confidence %v of one of four points, want 0.9875", p.Gain.Confidence)
		}
	}
	if r.Verdict != Significant || r.Gain != r.Points[3].Gain || !r.Points[3].Leads || len(r.Pairs) != 32 ||
		r.SimultaneousConfidence != 0.95 {
		t.Errorf("verdict %s, gain %+v, %d pairs", r.Verdict, r.Gain, len(r.Pairs))
	}
}

// Unequal work at one point leaves the campaign without a gain, and says where.
func TestCurveWithUnequalWorkAtOnePoint(t *testing.T) {
	c := curve(rand.New(rand.NewPCG(1, 2)), 6, 0.01, []float64{1, 8}, []float64{0.2, 0.2})
	for i := range c.Measurements {
		c.Measurements[i].Work = map[string]float64{WorkRequests: 10}
		if l := &c.Measurements[i]; l.Point == 8 && l.Arm == Perfect && l.Unit == 3 {
			l.Work[WorkRequests] = 20
		}
	}
	r := Judge(c)
	if r.Verdict != NotComparable || r.Gain.Estimate.Defined() || r.Points[0].Verdict != Significant ||
		r.Points[1].Verdict != NotComparable || r.Points[1].Gain.Estimate.Defined() ||
		!strings.Contains(finding(r.Failed()[0]), "concurrency 8, pair 3: requests") {
		t.Errorf("verdict %s, points %s and %s: %q", r.Verdict, r.Points[0].Verdict, r.Points[1].Verdict, r.Failed())
	}
}
