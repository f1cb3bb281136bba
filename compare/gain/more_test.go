package gain

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// threeArms are pairs of one normal launch with two others, in Latin squares.
func threeArms(rng *rand.Rand, blocks int, noise, balancer, perfect float64) Recorded {
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
	if balancer.Arm != "balancer" || math.Abs(float64(s.Estimate)-0.5) > 1e-4 || !(s.Low < s.Estimate &&
		s.Estimate < s.High &&
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

// builds is a campaign of two builds, without proof.
func builds(gains ...float64) Recorded {
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
