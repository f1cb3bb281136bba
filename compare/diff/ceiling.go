package diff

import (
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
)

// Ceiling relates the load that the traces show to the throughput that a campaign
// measures: the upper bound of the gain from balance, and the gain of the traces
// themselves. Numbers about the slowest rank are undefined where fewer than two ranks
// are compared.
type Ceiling struct {
	// Of is what expert time is here: of expert GEMMs where they are recognized in both
	// arms, else of all compute of the phase experts.
	Of imbalance.Of `json:"of"`
	// ExpertShare is f of the normal arm: expert time of the slowest rank of
	// each layer over the GPU time of the step, mean over steps, in [0, 1].
	ExpertShare router.Number `json:"expert_share"`
	// Balancedness is b of the normal arm: per step the mean rank's expert time over
	// the slowest rank's, both added over layers, mean over steps, in (0, 1].
	Balancedness router.Number `json:"balancedness"`
	// PerfectBalancedness is the same of the perfect arm: below 1 by uneven hardware
	// and noise.
	PerfectBalancedness router.Number `json:"perfect_balancedness"`
	// GainBound is 1/(1 − f + f·b) − 1, a fraction (see router.GainBound).
	GainBound router.Number `json:"gain_bound"`
	// SlowestExperts is the expert time of the slowest rank of each layer, added over layers.
	SlowestExperts Change `json:"experts_slowest"`
}

func (p arms) ceiling() Ceiling {
	c := Ceiling{
		Of: p.normal.times.Of, SlowestExperts: changeOf(p.normal.slowestExperts(), p.perfect.slowestExperts()),
		ExpertShare:  p.normal.perStep(func(s imbalance.Step) router.Number { return s.SlowestExpertsNS / s.BusyNS }),
		Balancedness: p.normal.balancedness(), PerfectBalancedness: p.perfect.balancedness(),
	}
	c.GainBound = router.GainBound(float64(c.ExpertShare), float64(c.Balancedness))
	return c
}

// maxOverMean is 1/balancedness of each arm, known where both are.
func (c Ceiling) maxOverMean() (normal, perfect float64, known bool) {
	normal, perfect = 1/c.Balancedness.Float64(), 1/c.PerfectBalancedness.Float64()
	return normal, perfect, c.Balancedness.Defined() && c.PerfectBalancedness.Defined()
}

// slowestExperts is one value for each step that counts.
func (a *armTimes) slowestExperts() (ns []float64) {
	for _, s := range a.times.Steps {
		if s.Excluded == imbalance.Counts {
			ns = append(ns, s.SlowestExpertsNS.Float64())
		}
	}
	return ns
}

func (a *armTimes) balancedness() router.Number {
	return a.perStep(func(s imbalance.Step) router.Number { return s.MeanExpertsNS / s.SlowestExpertsNS })
}
