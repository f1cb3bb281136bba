package gain

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// dosed are segments of launches that hold four arms, whose time rises by a slope with their load; noises
// are standard deviations of a launch, of what it adds to an arm, and of a segment.
func dosed(rng *rand.Rand, launches, blocks int, slope, launch, arm, segment float64) Recorded {
	arms := []Arm{Normal, "a", "b", Perfect}
	c := within(nil)
	c.More = arms[1:3]
	loads := map[Arm]Load{Normal: {1.8, true}, "a": {1.2, true}, "b": {1.5, false}, Perfect: {1, true}}
	for i := range launches {
		base, extra := launch*rng.NormFloat64(), map[Arm]float64{}
		for _, a := range arms {
			extra[a] = arm * rng.NormFloat64()
		}
		for b := range blocks {
			order := rng.Perm(len(arms))
			for place := range 2 * len(arms) {
				a := arms[order[min(place, 2*len(arms)-1-place)]]
				x := base + extra[a] + segment*rng.NormFloat64() -
					math.Log(1+slope*(float64(loads[a].MaxOverMean)-1))
				c.Measurements = append(c.Measurements, Measurement{Unit: i, Block: b, Arm: a, Position: 8*b + place,
					Status: StatusOK, Value: 1000 * math.Exp(x), Load: loads[a]})
			}
		}
	}
	return c
}

// load gives the segments of an arm another load.
func load(c Recorded, arm Arm, load Load) {
	for i := range c.Measurements {
		if c.Measurements[i].Arm == arm {
			c.Measurements[i].Load = load
		}
	}
}

// Without noise the line is exact, and the curve has every arm by its load.
func TestDoseByHand(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := Judge(dosed(rng, 3, 2, 0.13, 0.05, 0, 0))
	d := r.Comparisons[0].Dose
	if d == nil || math.Abs(float64(d.Slope)-0.13) > 1e-9 || float64(d.High-d.Low) > 1e-9 || d.N != 3 || d.Bent {
		t.Fatalf("%+v, want a slope of 0.13", d)
	}
	for i, want := range []DoseArm{{Perfect, Load{1, true}, 1, 1, 1, true}, {"a", Load{1.2, true}, 1.026, 0, 0, true},
		{"b", Load{1.5, false}, 1.065, 0, 0, true}, {Normal, Load{1.8, true}, 1.104, 0, 0, false}} {
		if a := d.Arms[i]; a.Arm != want.Arm || a.MaxOverMean != want.MaxOverMean || a.Measured != want.Measured ||
			math.Abs(float64(a.Time-want.Time)) > 1e-9 || a.Fitted != want.Fitted {
			t.Errorf("%+v, want %+v", a, want)
		}
	}
	// One launch, quiet: 1.96 times the slope's error where each arm has one of 0.006/√2. The loads 1, 1.2 and
	// 1.5 are 0.2333, 0.0333 and 0.2667 from their mean, the root of the sum of squares is 0.35590.
	one := Judge(dosed(rng, 1, 4, 0.13, 0.05, 0, 0)).Comparisons[0].Dose
	if half := float64(one.High-one.Low) / 2; one.N != 1 || math.Abs(half-1.95996*0.0042426/0.35590) > 1e-6 {
		t.Errorf("%+v, half-width %.6f", one, half)
	}
	// 1.026 at a load of 1.4 is 2.6 % below the line from 1 to 1.065 at 1.5; one launch does not show it.
	for launches, want := range map[int]bool{1: false, 3: true} {
		c := dosed(rng, launches, 2, 0.13, 0.05, 0, 0)
		load(c, "a", Load{1.4, true})
		if d := Judge(c).Comparisons[0].Dose; d.Bent != want {
			t.Errorf("%d launches: bent %t", launches, d.Bent)
		}
	}
	// 1.104 under learned routing at a load of 1.3 is off the line, which has 1.039 there: 0.104/0.3. On it, or beyond
	// its ends, it is not told apart.
	for at, want := range map[router.Number]float64{1.3: 0.104 / 0.3, 1.8: math.NaN()} {
		c := dosed(rng, 3, 2, 0.13, 0.05, 0, 0)
		load(c, Normal, Load{at, true})
		if x := Judge(c).Comparisons[0].Dose.Learned().Float64(); math.Abs(x-want) > 1e-9 || math.IsNaN(x) != math.IsNaN(want) {
			t.Errorf("learned routing at a load of %v costs %v, want %v", at, x, want)
		}
	}
	for at, apart := range map[router.Number]bool{1: false, 1.0198: false, 1.0202: true} { // by twice 0.01
		c := dosed(rng, 3, 2, 0.13, 0.05, 0, 0)
		load(c, "a", Load{at, true})
		load(c, "b", Load{})
		if d := Judge(c).Comparisons[0].Dose; (d != nil) != apart {
			t.Errorf("%+v of loads of 1 and %v", d, at)
		}
	}
	for by, want := range map[router.Number]bool{0.0049: false, 0.0051: true, -0.0049: false, -0.0051: true} {
		arm := func(name Arm, load, time router.Number) DoseArm {
			return DoseArm{name, Load{load, true}, time, time, time, true}
		}
		d := Dose{Arms: []DoseArm{arm(Perfect, 1, 1), arm("a", 1.2, 1.02+by), arm("b", 1.5, 1.05)}}
		if d.off(d.Arms[1]) != want || d.off(d.Arms[0]) || d.off(d.Arms[2]) || d.Learned().Defined() {
			t.Errorf("%v off the line: want %v", by, want)
		}
		if d.Arms[1].Low, d.Arms[1].High = 1, 1.05; d.off(d.Arms[1]) { // its interval holds the line
			t.Errorf("%v off the line, or not", by)
		}
	}
}

// The interval of the slope covers a known one as often as it says.
func TestDoseCoverage(t *testing.T) {
	for _, launches := range []int{1, 2, 3, 5, 8} {
		rng, covered, half, bent, n := rand.New(rand.NewPCG(3, uint64(launches))), 0.0, 0.0, 0.0, 0.0
		for range campaigns {
			d := Judge(dosed(rng, launches, 2, 0.13, 0.05, 0.0055/math.Sqrt2, 0.015)).Comparisons[0].Dose
			if d.Bent {
				bent += 1 / float64(campaigns)
			}
			if d.Low.Defined() { // both blocks are whole
				n++
				half += (float64(d.High-d.Low)/2 - half) / n
				covered += (map[bool]float64{true: 1}[d.Low <= 0.13 && 0.13 <= d.High] - covered) / n
			}
		}
		t.Logf("%d launches: covered %.1f %%, ±%.2f %% of time for each 10 %%, %.1f %% bent", launches, 100*covered, 10*half,
			100*bent)
		if bent > 0.05+3.5*math.Sqrt(0.95*0.05/float64(campaigns)) {
			t.Errorf("%d launches: %.3f of straight lines are called bent", launches, bent)
		}
		if slack := 3.5 * math.Sqrt(0.95*0.05/float64(campaigns)); math.Abs(covered-0.95) > slack && launches > 1 {
			t.Errorf("%d launches cover %.3f", launches, covered)
		}
	}
}
