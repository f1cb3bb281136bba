package gain

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// threeArms are pairs of one normal launch with two others, in Latin squares.
func threeArms(rng *rand.Rand, blocks int, noise, balancer, perfect float64) Campaign {
	orders := [][]Arm{{Normal, "balancer", Perfect}, {"balancer", Perfect, Normal}, {Perfect, Normal, "balancer"},
		{Perfect, "balancer", Normal}, {"balancer", Normal, Perfect}, {Normal, Perfect, "balancer"}}
	factor := map[Arm]float64{Normal: 1, "balancer": 1 + balancer, Perfect: 1 + perfect}
	var launches []Measurement
	for i := range blocks {
		for _, arm := range orders[i%6] {
			launches = append(launches, Measurement{Unit: i, Arm: arm, Position: len(launches), Status: StatusOK,
				Value: 100 * factor[arm] * math.Exp(noise*rng.NormFloat64())})
		}
	}
	c := valid(launches)
	c.More = []Arm{"balancer"}
	c.Differences = append(c.Differences, Difference{Kind: "environment", Name: "EPLB", Normal: "not set", Perfect: "1",
		Declared: true, Arm: "balancer"})
	return c
}

// By hand: ln 1.10 / ln 1.21 is one half.
func TestShareOfCeiling(t *testing.T) {
	r := Judge(threeArms(rand.New(rand.NewPCG(1, 1)), 6, 1e-6, 0.10, 0.21))
	if r.Verdict != Significant || math.Abs(float64(r.Gain.Estimate)-0.21) > 1e-4 || r.Gain.Method != CrossoverT ||
		r.Gain.N != 6 {
		t.Fatalf("verdict %s, gain %+v", r.Verdict, r.Gain)
	}
	s, balancer := r.Comparisons[1].Share, r.Comparisons[1]
	if balancer.Arm != "balancer" || math.Abs(float64(s.Estimate)-0.5) > 1e-4 || !(s.Low < s.Estimate && s.Estimate < s.High &&
		s.High-s.Low < 1e-3) {
		t.Errorf("share %+v, want 0.5", s)
	}
	if len(r.Comparisons) != 2 || balancer.Verdict != Faster || math.Abs(float64(balancer.Gain.Estimate)-0.10) > 1e-4 ||
		r.Main()[0].Arm != Perfect || !r.More() || len(r.Leading()) != 2 {
		t.Errorf("%+v", r.Comparisons)
	}
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"share_of_ceiling":{"estimate":0.`) {
		t.Errorf("%v: %s", err, text)
	}
}

// A balancer that is the normal arm recovers nothing, one that is the perfect arm all;
// without a ceiling nothing is said.
func TestShareAtItsEnds(t *testing.T) {
	for _, k := range []struct{ balancer, perfect, want float64 }{{0, 0.2, 0}, {0.2, 0.2, 1},
		{-0.1, 0.2, math.Log(0.9) / math.Log(1.2)}} {
		r := Judge(threeArms(rand.New(rand.NewPCG(1, 2)), 12, 0.005, k.balancer, k.perfect))
		if s := r.Comparisons[1].Share; !(float64(s.Low) < k.want && k.want < float64(s.High)) || s.High-s.Low > 0.2 {
			t.Errorf("%+v: share %+v", k, s)
		}
	}
	for _, perfect := range []float64{0, -0.2} {
		r := Judge(threeArms(rand.New(rand.NewPCG(1, 3)), 6, 0.005, 0.1, perfect))
		if s := r.Comparisons[1].Share; s.Estimate.Defined() || s.Low.Defined() {
			t.Errorf("perfect %+.1f: share %+v", perfect, s)
		}
	}
}

func TestUnequalWorkOfAFurtherArm(t *testing.T) {
	c := threeArms(rand.New(rand.NewPCG(1, 4)), 6, 0.005, 0.1, 0.2)
	for i := range c.Measurements {
		c.Measurements[i].Work = map[string]float64{WorkOutputTokens: 100}
		if c.Measurements[i].Arm == "balancer" {
			c.Measurements[i].Work[WorkOutputTokens] = 50
		}
	}
	r := Judge(c)
	noGain(t, "unequal work of a further arm", r)
	if !strings.Contains(finding(r.Failed()[0]), "normal 100, balancer 50") {
		t.Errorf("verdict %s: %v", r.Verdict, r.Failed())
	}
}

// builds is a campaign of two builds, without proof.
func builds(gains ...float64) Campaign {
	c := valid(paired(gains...))
	c.Proof, c.Builds, c.Threshold = nil, [2]Arm{"before", "after"}, 0
	c.Differences = []Difference{{Kind: "argument", Name: "command", Normal: "v1", Perfect: "v2", Declared: true}}
	return c
}

func TestBuilds(t *testing.T) {
	for want, gains := range map[Verdict][]float64{
		Faster:       {0.05, 0.051, 0.052, 0.05, 0.051, 0.052},
		Slower:       {-0.05, -0.051, -0.052, -0.05, -0.051, -0.052},
		Equal:        {0.001, -0.001, 0.001, 0.001, -0.001, 0.001},
		Inconclusive: {0.1, -0.1, 0.1, 0.1, -0.1, 0.1},
	} {
		r := Judge(builds(gains...))
		if r.Verdict != want {
			t.Errorf("verdict %s, want %s", r.Verdict, want)
		}
		text, _ := json.Marshal(r.Checks)
		for _, word := range []string{"balance", "perfect", "normal", "router"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s: %q speaks of %s", want, text, word)
			}
		}
	}
}

// The points of builds have their own verdicts, and an interval inside the threshold decides nothing.
func TestPointsOfBuilds(t *testing.T) {
	c := curve(rand.New(rand.NewPCG(1, 9)), 6, 0.002, []float64{1, 8, 64}, []float64{-0.05, 0.02, 0.09})
	c.Builds, c.Proof, c.Threshold = [2]Arm{"before", "after"}, nil, 0
	if r := Judge(c); r.Points[0].Verdict != Slower || r.Points[2].Verdict != Faster {
		t.Errorf("%+v", r.Points)
	}
	wide := builds(0.03, 0.02, 0.04, 0.03, 0.02, 0.04)
	wide.Threshold = 0.1
	if r := Judge(wide); r.Verdict != Inconclusive {
		t.Error(r.Verdict)
	}
}
