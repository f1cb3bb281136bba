package diff

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Prediction is the throughput gain that the compute of the traces predicts:
//
//	gain = saved / step
//
// with the time of a step that perfect routing saves, over the time of a step of the
// perfect arm. In each arm a step needs the compute of the slowest rank of every layer:
// ranks wait for it in the layer's collective. Outside the layers it needs that of the
// mean rank. Saved is the difference of the two, and the sum of three parts: straggler
// loss, mean expert time, and the mean time of all other compute, which is negative
// where the perfect arm does more. Waiting is not counted, nor are transfer in collectives
// and idle time of the GPU.
type Prediction struct {
	Gain router.Number `json:"gain"` // a fraction
	// Low and High are the interval of SavedNS over StepNS, at Confidence: Student's t of
	// the differences where ranges name as many tokens for each step of one arm as for the
	// other's (Paired), else Welch's. What a step's size explains of its difference is no
	// spread then: the ratio estimator of Cochran, Sampling Techniques, 3rd ed., §6.3.
	// The replicates are steps of one launch of each arm:
	// the interval does not include launch-to-launch variation, nor that of StepNS.
	// Undefined for fewer than two steps in an arm, and for steps of unequal size that are
	// not paired, whose spread is that of their sizes.
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence float64       `json:"confidence"`
	Paired     bool          `json:"paired"`
	SavedNS    router.Number `json:"saved_ns"` // per step: the sum of the next three
	LossNS     router.Number `json:"saved_loss_ns"`
	ExpertsNS  router.Number `json:"saved_experts_ns"`
	OtherNS    router.Number `json:"saved_other_ns"`
	StepNS     router.Number `json:"step_ns"`    // of the perfect arm
	StepBasis  StepBasis     `json:"step_basis"` // empty where StepNS is undefined
	// LateHosts says that ranks of the normal arm wait mostly for hosts that launch late.
	// Steps are then not as long as their compute, and Gain is the most that is to be
	// expected.
	LateHosts bool `json:"late_hosts"`
	// ProfilerOverhead is profiled/unprofiled step time − 1 of the perfect arm, a fraction;
	// undefined without a campaign that has step times.
	ProfilerOverhead router.Number `json:"profiler_overhead"`
	Steps            [2]int        `json:"steps"`    // of normal and perfect
	Measured         *gain.Gain    `json:"campaign"` // of the unprofiled launches; nil without a campaign
	Verdict          gain.Verdict  `json:"campaign_verdict,omitempty"`

	saved stats.Interval    // SavedNS
	parts [3]stats.Interval // LossNS, ExpertsNS, OtherNS
}

// StepBasis is where the time of a step comes from.
type StepBasis string

// The bases.
const (
	FromCampaign StepBasis = "campaign" // unprofiled launches
	Profiled     StepBasis = "profiled" // the perfect arm's own trace, see imbalance.Times
)

// prediction is undefined where the sides are not comparable or two builds, without layers,
// steps or a second rank (busy ranks of different layers then cancel), and where a rank of the
// run is missing, which may be the busiest.
func (p arms) prediction(c *Comparison) Prediction {
	u := router.Undefined()
	r := Prediction{
		Gain: u, Low: u, High: u, Confidence: gain.DefaultConfidence, SavedNS: u, LossNS: u, ExpertsNS: u, OtherNS: u,
		StepNS: u, ProfilerOverhead: u,
		Steps: [2]int{len(p.normal.steps), len(p.perfect.steps)},
	}
	if !c.Comparable || c.fused || c.partial || c.Builds.Named() || len(c.Layers) == 0 || len(c.Ranks) < 2 ||
		p.normal.times.Unmarked || p.perfect.times.Unmarked {
		return r
	}
	later := p.later()
	needed := after(p.perfect.needed(), -later)
	r.Paired = sameTokens(after(p.normal.batches, later), after(p.perfect.batches, -later))
	unlike := !r.Paired && (unequal(needed) || unequal(after(p.normal.needed(), later)))
	saved := func(of func(*armTimes) []float64) stats.Interval {
		normal, perfect := after(of(p.normal), later), after(of(p.perfect), -later)
		r.Steps = [2]int{len(normal), len(perfect)}
		if !r.Paired {
			difference := stats.Welch(normal, perfect, r.Confidence)
			if unlike {
				difference.Low, difference.High = math.NaN(), math.NaN()
			}
			return difference
		}
		floats.Sub(normal, perfect)
		return stats.PairedT(ofMeanStep(normal, needed), r.Confidence).Interval
	}
	r.saved = saved((*armTimes).needed)
	r.parts = [3]stats.Interval{saved((*armTimes).loss), saved((*armTimes).experts), saved((*armTimes).other)}
	r.SavedNS, r.LossNS, r.ExpertsNS, r.OtherNS = router.Number(r.saved.Estimate), router.Number(r.parts[0].Estimate),
		router.Number(r.parts[1].Estimate), router.Number(r.parts[2].Estimate)
	if unlike {
		c.warn("unequal_steps", "")
	}
	r.LateHosts = c.waiting[0].MostlyHosts()
	r.over(c.Perfect.StepNS, Profiled)
	return r
}

// after leaves out the first steps, so that both arms begin with the same one: where one
// arm excludes it as warm-up, and where it is inferred and lacks what lies before its
// first layer.
func after[T any](steps []T, first int) []T { return steps[min(max(first, 0), len(steps)):] }

// sameTokens reports steps that hold as many tokens in both arms, one by one.
func sameTokens(normal, perfect []ranges.Batch) bool {
	return slices.EqualFunc(normal, perfect, func(a, b ranges.Batch) bool { return a.Tokens == b.Tokens && a.Tokens > 0 })
}

// unequal reports steps that differ in size by more than half.
func unequal(steps []float64) bool {
	return len(steps) > 0 && slices.Max(steps) > 1.5*slices.Min(steps)
}

// ofMeanStep takes from the differences what the size of their steps explains. The mean
// stays.
func ofMeanStep(differences, sizes []float64) []float64 {
	mean, size := stat.Mean(differences, nil), stat.Mean(sizes, nil)
	for i := range differences {
		differences[i] -= mean * (sizes[i]/size - 1)
	}
	return differences
}

// needed is, step by step, the compute that a step needs when ranks wait for each other
// in every layer.
func (a *armTimes) needed() []float64 {
	steps := a.mean(scope{every, every}, workOf)
	for s, loss := range a.times.Loss() {
		steps[s] += loss
	}
	return steps
}

// loss is, step by step, the straggler loss.
func (a *armTimes) loss() []float64 { return a.times.Loss() }

// experts is, step by step, the mean rank's compute of the phase experts.
func (a *armTimes) experts() []float64 { return a.mean(expertScope, workOf) }

// other is, step by step, the mean rank's compute of all other phases.
func (a *armTimes) other() []float64 {
	steps := a.mean(scope{every, every}, workOf)
	floats.Sub(steps, a.experts())
	return steps
}

// over sets the step's time, and with it the gain.
func (r *Prediction) over(stepNS router.Number, basis StepBasis) {
	if !stepNS.Defined() {
		return
	}
	r.StepNS, r.StepBasis = stepNS, basis
	r.Gain, r.Low, r.High = r.SavedNS/stepNS, router.Number(r.saved.Low)/stepNS, router.Number(r.saved.High)/stepNS
}

// Caveats are the warnings of a comparison, and which step time its gains are of.
func (c *Comparison) Caveats() []router.Warning {
	all := slices.Clone(c.Warnings)
	switch p := c.Prediction; {
	case p.SavedNS.Defined() && p.StepBasis == "":
		all = append(all, router.Warn("no_gain_predicted", ""))
	case p.ProfilerOverhead.Defined():
		all = append(all, router.Warn("profiler_overhead", "", "share", p.ProfilerOverhead))
	}
	return all
}

// CampaignRefused is the code of the warning of a campaign that failed a check.
const CampaignRefused = "campaign_refused"

// WithCampaign sets the result of unprofiled launches beside the prediction, and takes
// the step time of their perfect arm for it and for the split of the gain, which is then the
// measured one. tokens is how many tokens all ranks together
// process in a step; it is needed where the campaign measured tokens per second, and 0
// where it is not known. Where the campaign has no time of the steps compared, a warning
// says why, and all else stays. Sides that are not comparable have no gain beside them.
func (c *Comparison) WithCampaign(r gain.Result, tokens float64) {
	if !c.Comparable {
		return
	}
	if r.Verdict.Refused() {
		c.warn(CampaignRefused, "", "verdict", r.Verdict)
		return
	}
	p := &c.Prediction
	p.Measured, p.Verdict = &r.Gain, r.Verdict
	steps, why := r.StepsNS(gain.Perfect, tokens)
	switch {
	case len(c.Kinds) > 1:
		c.warn("campaign_step_time", "", "why", "kinds")
		return
	case why.Code != "":
		c.Warnings = append(c.Warnings, why)
		return
	}
	mean := router.Number(stat.Mean(steps, nil))
	if p.StepBasis == Profiled {
		p.ProfilerOverhead = p.StepNS/mean - 1
	}
	p.over(mean, FromCampaign)
	c.split(p.Measured)
}
