package diff

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Prediction is the throughput gain that the traces predict:
//
//	gain = saved / step
//
// with the time of a step that perfect routing saves, over the time of a step that it leaves. It
// is a replay of the normal arm's steps with the perfect arm's time of experts, dispatch and
// combine, and of collectives once all ranks are there, see package replay: what hosts and waiting leave of it. Where the perfect arm's GPUs
// are faster or slower in what balance does not change, its times are scaled by as much.
type Prediction struct {
	Gain router.Number `json:"gain"` // a fraction
	// Low and High are the interval at Confidence over steps of one launch of each arm, with the
	// law's error, widened by how gains of launches differ (gain.LaunchSD), which one launch does
	// not show.
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence float64       `json:"confidence"`
	SavedNS    router.Number `json:"saved_ns"`      // per step
	LossNS     router.Number `json:"saved_loss_ns"` // with even ranks alone
	StepNS     router.Number `json:"step_ns"`       // that is left
	StepBasis  StepBasis     `json:"step_basis"`    // empty where StepNS is undefined
	// ProfilerOverhead is profiled/unprofiled step time − 1 of the perfect arm, a fraction;
	// undefined without a campaign that has step times.
	ProfilerOverhead router.Number `json:"profiler_overhead"`
	Measured         *gain.Gain    `json:"campaign"` // of the unprofiled launches; nil without a campaign
	Verdict          gain.Verdict  `json:"campaign_verdict,omitempty"`

	saved stats.Interval    // SavedNS
	parts [2]stats.Interval // LossNS, ExpertsNS
}

// StepBasis is where the time of a step comes from.
type StepBasis string

// The bases.
const (
	FromCampaign StepBasis = "campaign" // unprofiled launches
	Profiled     StepBasis = "profiled" // the replay
)

// prediction is undefined where the sides are not comparable or two builds, and where the steps
// of either cannot be replayed: without layers, steps or a second rank, with a rank of the run
// missing, or where the law does not hold.
func (p arms) prediction(c *Comparison) Prediction {
	u := router.Undefined()
	r := Prediction{
		Gain: u, Low: u, High: u, Confidence: gain.DefaultConfidence, SavedNS: u, LossNS: u,
		StepNS: u, ProfilerOverhead: u,
	}
	if !c.Comparable || c.fused || c.partial || c.Builds.Named() || len(c.Layers) == 0 || len(c.Ranks) < 2 ||
		!p.normal.replay.CanRun() || !p.perfect.replay.CanRun() {
		return r
	}
	if less := 1 - p.normal.replay.ExpertRatio(p.perfect.replay); less > mostLess {
		names := c.Builds.Names()
		c.refuse("experts", "share", less, "other", names[1])
		return r
	}
	if at, by, alone := p.normal.replay.OneSlower(p.perfect.replay); alone && !c.loadKnown {
		c.refuse("one_rank", "rank", c.Ranks[at], "by", by, "arm", c.Builds.Names()[0])
		return r
	}
	change, even := p.normal.replay.WithExperts(p.perfect.replay), p.normal.replay.WhatIf[0]
	if !change.Gain.Defined() || !p.perfect.replay.WhatIf[0].Gain.Defined() {
		return r
	}
	saved := func(w trace.WhatIf) stats.Interval {
		return stats.Interval{Estimate: w.SavedNS.Float64(), Low: (w.Low * w.StepNS).Float64(),
			High: (w.High * w.StepNS).Float64(), Confidence: r.Confidence}
	}
	r.saved, r.parts[0] = ofLaunches(saved(change), change.StepNS), saved(even)
	rest := r.saved.Estimate - r.parts[0].Estimate
	r.parts[1] = stats.Interval{Estimate: rest, Low: math.NaN(), High: math.NaN()}
	r.SavedNS, r.LossNS = router.Number(r.saved.Estimate), router.Number(r.parts[0].Estimate)
	r.over(change.StepNS, Profiled)
	if w, due := change.WarnLate(); due {
		c.Warnings = append(c.Warnings, w)
	}
	return r
}

// ofLaunches widens the interval of the time saved by launches of which each has a gain of its own:
//
//	half-width = √(half-width over steps² + (z · LaunchSD · recorded step)²)
func ofLaunches(saved stats.Interval, left router.Number) stats.Interval {
	z := distuv.UnitNormal.Quantile((1 + saved.Confidence) / 2)
	launches := z * gain.LaunchSD * (saved.Estimate + left.Float64())
	saved.Low = saved.Estimate - math.Hypot(saved.Estimate-saved.Low, launches)
	saved.High = saved.Estimate + math.Hypot(saved.High-saved.Estimate, launches)
	return saved
}

// mostLess is the share of expert time that balance may save on as many tokens. In 20 real pairs even
// experts take up to 15 % less.
const mostLess = 0.25

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
