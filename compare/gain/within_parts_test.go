package gain

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// A failed segment takes its block out and nothing else, one tried again does not, and a
// launch without a block is no launch.
func TestWithinDropsOut(t *testing.T) {
	blocks := [][]float64{{0.2, 0.3}, {0.2, 0.22}, {0.18, 0.2}}
	for name, k := range map[string]struct {
		spoil  func([]Measurement) []Measurement
		first  float64 // log gain of the first launch
		n      int
		status []string // of the first launch's blocks
	}{
		"whole": {func(l []Measurement) []Measurement { return l }, 0.25, 3, []string{PairComplete, PairComplete}},
		"one segment": {func(l []Measurement) []Measurement { l[5].Status = "timed out"; return l }, 0.2, 3,
			[]string{PairComplete, PairIncomplete}},
		"tried again at once": {func(l []Measurement) []Measurement {
			again := l[5]
			l[5].Status = "failed"
			l[6].Position, l[7].Position, again.Position = l[6].Position+1, l[7].Position+1, again.Position+1
			return append(l, again)
		}, 0.25, 3, []string{PairComplete, PairComplete}},
		"a launch": {func(l []Measurement) []Measurement {
			for i := range 8 {
				l[i].Status = "server died"
			}
			return l
		}, math.NaN(), 2, []string{PairIncomplete, PairIncomplete}},
	} {
		r := Judge(within(k.spoil(blocksOf(blocks...))))
		first := r.Launches[0]
		if x := math.Log1p(first.Gain.Float64()); r.Gain.N != k.n || math.Abs(x-k.first) > 1e-9 ||
			math.IsNaN(x) != math.IsNaN(k.first) {
			t.Errorf("%s: %d launches, the first gains %v, want %d and %v", name, r.Gain.N, x, k.n, k.first)
		}
		var status []string
		for _, b := range first.Blocks {
			status = append(status, b.Status)
		}
		if !reflect.DeepEqual(status, k.status) {
			t.Errorf("%s: blocks %q", name, status)
		}
		if len(r.Launches) != 3 || (first.Status == PairComplete) == math.IsNaN(k.first) {
			t.Errorf("%s: launches %+v", name, r.Launches)
		}
	}
}

// Three arms in a launch, an order and its reverse: each against the normal one by itself,
// whatever the noise of the others, and the share by hand.
func TestWithinArms(t *testing.T) {
	arms := []Arm{Normal, Perfect, "balancer"}
	perfect, balancer := []float64{0.20, 0.22, 0.18}, []float64{0.10, 0.11, 0.09}
	rng := rand.New(rand.NewPCG(3, 3))
	var segments []Measurement
	for i := range perfect {
		for b := range 2 {
			order := rng.Perm(3)
			for place := range 6 {
				arm := order[min(place, 5-place)]
				segments = append(segments, Measurement{Unit: i, Block: b, Arm: arms[arm], Position: 6*b + place,
					Status: StatusOK, Value: 100 * math.Exp(0.001*float64(b)+[]float64{0, perfect[i], balancer[i]}[arm])})
			}
		}
	}
	c := within(segments)
	c.More = arms[2:]
	r := Judge(c)
	if r.Gain.N != 3 || len(r.Launches) != 6 || r.Launches[3].Arm != "balancer" || r.Verdict != NoVerdict {
		t.Fatalf("%s, %+v, %+v", r.Verdict, r.Gain, r.Launches)
	}
	// Means 0.20 and 0.10, each ± 4.3027 · 0.02/√3 and half of that; all shares are one half.
	for i, x := range logs(r.Gain) {
		require.Near(t, "perfect", x, []float64{0.2, 0.2 - 0.049683, 0.2 + 0.049683}[i], 1e-5)
	}
	for i, x := range logs(r.Comparisons[1].Gain) {
		require.Near(t, "balancer", x, []float64{0.1, 0.1 - 0.024842, 0.1 + 0.024842}[i], 1e-5)
	}
	share := r.Comparisons[1].Share
	for _, x := range []router.Number{share.Estimate, share.Low, share.High} {
		require.Near(t, "share", x.Float64(), 0.5, 1e-6)
	}
}

// Drift cancels; outlying launches and segments are named.
func TestWithinChecks(t *testing.T) {
	for name, k := range map[string]struct {
		change func(*Measurement)
		check  string
		why    string
	}{
		"drift": {func(l *Measurement) { l.Value *= math.Exp(0.01 * float64(l.Position)) }, CheckDifference, "within"},
		"segment": {func(l *Measurement) {
			l.Value *= map[bool]float64{true: 0.75, false: 1}[l.Unit == 2 && l.Position == 5]
		}, CheckSegments, "far"},
		"work": {func(l *Measurement) {
			l.Work = map[string]float64{WorkOutputTokens: 100}
			if l.Unit == 1 && l.Position == 6 {
				l.Work[WorkOutputTokens] = 90
			}
		}, CheckWork, "unequal"},
	} {
		segments := withinCell{launches: 5, blocks: 2, launch: 0.05, interaction: 0.002, segment: 0.001}.segments(rand.New(rand.NewPCG(4, 4)), 0.2)
		plain := Judge(within(segments))
		for _, c := range plain.Checks {
			if c.Status == Warn || c.Status == Fail {
				t.Errorf("%s: %+v", name, c)
			}
		}
		for i := range segments {
			k.change(&segments[i])
		}
		r := Judge(within(segments))
		if c := check(t, r, k.check); c.Args["why"] != k.why || name != "drift" && c.Status != Warn && c.Status != Fail {
			t.Errorf("%s: %+v, want %s", name, c, k.why)
		}
		if name == "drift" && math.Abs(logs(r.Gain)[0]-logs(plain.Gain)[0]) > 1e-9 {
			t.Errorf("a drift changes the gain from %v to %v", plain.Gain.Estimate, r.Gain.Estimate)
		}
		if name == "work" {
			noGain(t, name, r)
		}
	}
}
