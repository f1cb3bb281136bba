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
	// Of is what expert time is here: that of expert GEMMs where they are recognized in both
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
	// ExpertWork is the mean rank's expert time in the perfect arm over that in
	// the normal arm. Moving load between ranks leaves it at 1; below 1, experts
	// of equal size also made the kernels faster per slot.
	ExpertWork router.Number `json:"expert_work_ratio"`
	// GainBoundWithWork is the bound with that taken in: 1/(1 − f + f·b·w) − 1
	// with w = ExpertWork; undefined where b·w exceeds 1.
	GainBoundWithWork router.Number `json:"gain_bound_with_work"`
	// StepGain is the fall of the step's GPU time as a gain: normal/perfect − 1.
	// One launch of each arm, under a profiler: no verdict rests on it. Undefined where
	// the arms exclude different numbers of warm-up steps.
	StepGain router.Number `json:"step_gain"`
	// SlowestExperts is the expert time of the slowest rank of each layer, added over layers.
	SlowestExperts Change `json:"experts_slowest"`
	// StragglerLoss is the time of a step that ranks spent less than their
	// slowest peer, work of all phases, over all layers.
	StragglerLoss Change `json:"straggler_loss"`
}

func (p arms) ceiling(step Change) Ceiling {
	c := Ceiling{
		Of: p.normal.times.Of, SlowestExperts: changeOf(p.normal.slowestExperts(), p.perfect.slowestExperts()),
		ExpertShare:         p.normal.perStep(func(s imbalance.Step) router.Number { return s.SlowestExpertsNS / s.BusyNS }),
		Balancedness:        p.normal.balancedness(),
		PerfectBalancedness: p.perfect.balancedness(), StepGain: step.Ratio - 1, ExpertWork: router.Undefined(),
		StragglerLoss: changeOf(p.normal.times.Loss(), p.perfect.times.Loss()),
	}
	if p.later() != 0 { // one arm still waits in a step that the other leaves out
		c.StepGain = router.Undefined()
	}
	c.GainBound = router.GainBound(float64(c.ExpertShare), float64(c.Balancedness))
	mean := func(s imbalance.Step) router.Number { return s.MeanExpertsNS }
	if normal := p.normal.perStep(mean); normal > 0 {
		c.ExpertWork = p.perfect.perStep(mean) / normal
	}
	c.GainBoundWithWork = router.GainBound(float64(c.ExpertShare), float64(c.Balancedness*c.ExpertWork))
	return c
}

// later is how many more steps the perfect arm excludes as warm-up.
func (p arms) later() int {
	return len(p.perfect.times.StepsOf(imbalance.WarmUp)) - len(p.normal.times.StepsOf(imbalance.WarmUp))
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

// RankSpeed separates load from hardware. The perfect arm gives every rank the
// same load, so what its ranks differ in is the hardware; dividing the normal
// arm's time by it leaves the load.
type RankSpeed struct {
	Rank      int           `json:"rank"`
	NormalNS  router.Number `json:"normal_ns"`  // expert work per step
	PerfectNS router.Number `json:"perfect_ns"` // likewise
	// Hardware is the rank's perfect time over the mean of all ranks': above 1
	// for a slower GPU.
	Hardware router.Number `json:"hardware"`
	// Load is the rank's normal/perfect ratio over the mean of all ranks': its
	// relative load with the hardware divided out.
	Load router.Number `json:"load"`
}

// rankSpeeds is empty for fewer than two ranks, and without expert work on some
// rank of either arm.
func (p arms) rankSpeeds() []RankSpeed {
	if len(p.normal.ranks) < 2 {
		return []RankSpeed{}
	}
	rows := make([]RankSpeed, len(p.normal.ranks))
	perfect, ratio := make([]float64, len(rows)), make([]float64, len(rows))
	for r, rank := range p.normal.ranks {
		c := changeOf(p.normal.ofRank(r, expertScope, workOf), p.perfect.ofRank(r, expertScope, workOf))
		if !(c.NormalNS > 0 && c.PerfectNS > 0) {
			return []RankSpeed{}
		}
		rows[r] = RankSpeed{Rank: rank, NormalNS: c.NormalNS, PerfectNS: c.PerfectNS}
		perfect[r], ratio[r] = float64(c.PerfectNS), float64(c.Ratio)
	}
	for r := range rows {
		rows[r].Hardware = router.Number(perfect[r]) / average(perfect)
		rows[r].Load = router.Number(ratio[r]) / average(ratio)
	}
	return rows
}
