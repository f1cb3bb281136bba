package gain

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// slowCell is a kind of campaign: its noise, and which share of the launches of which arms is
// slow, each by 10 to 40 %.
type slowCell struct {
	pairs        int
	noise, share float64
	both         bool
}

func (c slowCell) String() string {
	arms := map[bool]string{false: "one arm", true: "both arms"}[c.both]
	return fmt.Sprintf("%2d pairs, noise %.0f %%, %2.0f %% of %s slow", c.pairs, 100*c.noise, 100*c.share, arms)
}

// launches are one campaign whose gain without slow launches is given.
func (c slowCell) launches(rng *rand.Rand, gain float64) []Launch {
	gains := make([]float64, c.pairs)
	for i := range gains {
		gains[i] = gain
	}
	launches := paired(gains...)
	for i := range launches {
		l := &launches[i]
		l.Value *= math.Exp(c.noise * rng.NormFloat64())
		if slow, by := rng.Float64() < c.share, 0.1+0.3*rng.Float64(); slow && (c.both || l.Arm == Normal) {
			l.Value *= 1 - by
		}
	}
	return launches
}

// slowOutcome are shares of campaigns: whose interval covers the truth, in which outliers are found, and
// with each verdict.
type slowOutcome struct {
	covers, labeled, width float64
	verdicts               map[Verdict]float64
}

func (c slowCell) simulate(trials int, gain float64) slowOutcome {
	rng, share := rand.New(rand.NewPCG(23, uint64(c.pairs))), 1/float64(trials)
	o := slowOutcome{verdicts: map[Verdict]float64{}}
	for range trials {
		r := Judge(valid(c.launches(rng, gain)))
		if float64(r.Gain.Low) <= gain && gain <= float64(r.Gain.High) {
			o.covers += share
		}
		if len(r.Outliers) > 0 {
			o.labeled += share
		}
		o.width += float64(r.Gain.High-r.Gain.Low) * share
		o.verdicts[r.Verdict] += share
	}
	return o
}

// Slow launches seldom make a verdict where the gain is on the threshold and leave one where
// it is far from it, and verdict and interval are as they were without any.
func TestSlowLaunches(t *testing.T) { slowLaunches(t, 25, []int{8}) }

// slowLaunches simulates so many campaigns of each cell; a noise of 5 % hides slow launches, which the
// package comment states.
func slowLaunches(t *testing.T, trials int, sizes []int) {
	slack := func(p float64) float64 { return 3 * math.Sqrt(p*(1-p)/float64(trials)) }
	for _, noise := range []float64{0.01, 0.02, 0.05} {
		for _, slow := range []slowCell{{}, {share: 0.1}, {share: 0.2}, {share: 0.1, both: true}, {share: 0.2, both: true}} {
			for _, pairs := range sizes {
				c := slowCell{pairs, noise, slow.share, slow.both}
				at, far := c.simulate(trials, DefaultThreshold), c.simulate(trials, 2*DefaultThreshold)
				text := fmt.Sprintf("%v: covers %4.1f, labeled %4.1f, significant %4.1f, below %4.1f, width %4.1f; at +20 %% "+
					"significant %5.1f", c, 100*at.covers, 100*at.labeled, 100*at.verdicts[Significant],
					100*at.verdicts[NotSignificant], 100*at.width, 100*far.verdicts[Significant])
				t.Log(text)
				switch {
				case noise > 0.02:
				case at.covers < 0.935-slack(0.935):
					t.Errorf("covers too seldom: %s", text)
				case c.share == 0 && at.labeled > 0.03+slack(0.03):
					t.Errorf("without slow launches: %s", text)
				case pairs == 20 && c.share < 0.2 && !c.both && far.verdicts[Significant] < 0.9:
					t.Errorf("blind: %s", text)
				}
			}
		}
	}
}

// The campaign of the field names its two slow launches, and asks for no more pairs.
func TestOutliersOfTheField(t *testing.T) {
	content, err := os.ReadFile("../../testdata/field/results/vllm-qwen3-campaign.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded Result
	if err := json.Unmarshal(content, &recorded); err != nil {
		t.Fatal(err)
	}
	var launches []Launch
	for _, p := range recorded.Pairs {
		second := map[string]int{"AB": 1}[p.Order]
		launches = append(launches,
			Launch{Pair: p.Pair, Arm: Normal, Position: 2*p.Pair + 1 - second, Status: StatusOK,
				Value: p.Normal.Float64()},
			Launch{Pair: p.Pair, Arm: Perfect, Position: 2*p.Pair + second, Status: StatusOK,
				Value: p.Perfect.Float64()})
	}
	r := Judge(valid(launches))
	if len(r.Outliers) != 2 || r.Outliers[0].Launch != 7 || r.Outliers[0].Arm != Perfect || r.Outliers[1].Launch != 8 ||
		r.Outliers[1].Pair != 4 {
		t.Errorf("outliers %+v, want launch 7 of the perfect arm and 8 of the normal one", r.Outliers)
	}
	if r.Verdict != Inconclusive || r.PairsNeeded.Defined() {
		t.Errorf("%s, %v pairs needed", r.Verdict, r.PairsNeeded)
	}
	if r.Gain.Low != recorded.Gain.Low || r.Gain.High != recorded.Gain.High {
		t.Errorf("%v to %v, want %v to %v", r.Gain.Low, r.Gain.High, recorded.Gain.Low, recorded.Gain.High)
	}
}
