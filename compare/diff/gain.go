package diff

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Prediction is the throughput gain that the traces predict:
//
//	gain = saved / step
//
// with the time of a step that perfect routing saves, over the time of a step that it leaves. It is a
// replay of the normal arm's steps with the perfect arm's time of experts, dispatch and combine, and of
// collectives once all ranks are there, see package replay: what hosts and waiting leave of it. Where the
// perfect arm's GPUs are faster or slower in what balance does not change, its times are scaled by as much.
type Prediction struct {
	Gain router.Number `json:"gain"` // a fraction
	// Low and High are the interval at Confidence over steps of one launch of each arm, with the law's
	// error, widened by how gains of launches differ (gain.LaunchSD), which one launch does not show.
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence float64       `json:"confidence"`
	SavedNS    router.Number `json:"saved_ns"`      // per step
	LossNS     router.Number `json:"saved_loss_ns"` // with even ranks alone
	StepNS     router.Number `json:"step_ns"`       // that is left
	StepBasis  StepBasis     `json:"step_basis"`    // empty where StepNS is undefined
	// ProfilerOverhead is profiled/unprofiled step time − 1 of the perfect arm, a fraction; undefined
	// without a campaign that has step times.
	ProfilerOverhead router.Number `json:"profiler_overhead"`
	Measured         *gain.Gain    `json:"campaign"` // of the unprofiled launches; nil without a campaign
	Verdict          gain.Verdict  `json:"campaign_verdict,omitempty"`

	saved, ranks stats.Interval // of SavedNS and LossNS
}

// StepBasis is where the time of a step comes from.
type StepBasis string

// The bases.
const (
	FromCampaign StepBasis = "campaign" // unprofiled launches
	Profiled     StepBasis = "profiled" // the replay
)

// mostLess is the share of expert time that balance may save on as many tokens. In 20 real pairs even
// experts take up to 15 % less.
const mostLess = 0.25

// predict fills in Prediction. It is undefined where the sides are not comparable or two builds, and where
// the steps of either cannot be replayed: without layers, steps or a second rank, with a rank of the run
// missing, or where the law does not hold.
func (c *Comparison) predict(a arms, partial bool) {
	u, normal, perfect := router.Undefined(), a[0].replay, a[1].replay
	p := &c.Prediction
	*p = Prediction{Gain: u, Low: u, High: u, Confidence: gain.DefaultConfidence, SavedNS: u, LossNS: u, StepNS: u,
		ProfilerOverhead: u}
	if !c.Comparable || partial || c.Builds.Named() || len(c.Layers) == 0 || len(c.Ranks) < 2 ||
		normal == nil || perfect == nil || normal.Run == nil || perfect.Run == nil {
		return
	}
	if less := 1 - normal.Run.ExpertRatio(perfect.Run); less > mostLess {
		c.refuse("experts", "share", less, "other", gain.Perfect)
		return
	}
	load := func(r imbalance.Row) bool { return r.Level == router.LevelRank && r.Quantity == imbalance.Load }
	if at, by, alone := normal.Run.OneSlower(perfect.Run); alone && !slices.ContainsFunc(a[0].trace.Imbalance, load) {
		c.refuse("one_rank", "rank", c.Ranks[at], "by", by, "arm", gain.Normal)
		return
	}
	change, even := trace.NewWhatIf("experts of the other arm", normal.Run.WithExperts(perfect.Run)), normal.WhatIf[0]
	if !change.Gain.Defined() || !perfect.WhatIf[0].Gain.Defined() {
		return
	}
	saved := func(w trace.WhatIf) stats.Interval {
		return stats.Interval{Estimate: w.SavedNS.Float64(), Low: (w.Low * w.StepNS).Float64(),
			High: (w.High * w.StepNS).Float64()}
	}
	p.saved, p.ranks = ofLaunches(saved(change), change.StepNS), saved(even)
	p.SavedNS, p.LossNS = router.Number(p.saved.Estimate), router.Number(p.ranks.Estimate)
	p.over(change.StepNS, Profiled)
	if w, due := change.WarnLate(); due {
		c.Warnings = append(c.Warnings, w)
	}
}

// ofLaunches widens the interval of the time saved by launches of which each has a gain of its own:
//
//	half-width = √(half-width over steps² + (z · LaunchSD · recorded step)²)
func ofLaunches(saved stats.Interval, left router.Number) stats.Interval {
	z := distuv.UnitNormal.Quantile((1 + gain.DefaultConfidence) / 2)
	launches := z * gain.LaunchSD * (saved.Estimate + left.Float64())
	saved.Low = saved.Estimate - math.Hypot(saved.Estimate-saved.Low, launches)
	saved.High = saved.Estimate + math.Hypot(saved.High-saved.Estimate, launches)
	return saved
}

// over sets the step's time, and with it the gain.
func (p *Prediction) over(stepNS router.Number, basis StepBasis) {
	p.StepNS = stepNS
	if p.SavedNS.Defined() {
		p.StepBasis = basis
		p.Gain, p.Low, p.High = p.SavedNS/stepNS, router.Number(p.saved.Low)/stepNS, router.Number(p.saved.High)/stepNS
	}
}

// mostApart is the difference from which a measured gain may contradict the predicted one, a fraction.
const mostApart = 0.05

// unlike reports a measured gain that contradicts the predicted one: one is more than twice the other, they are
// more than mostApart apart, and their intervals do not meet. 22.9 % (19.9 to 26.0) is unlike 8.0 % (6.7 to 9.4).
func (p *Prediction) unlike(measured gain.Gain) bool {
	less, more := min(p.Gain, measured.Estimate), max(p.Gain, measured.Estimate)
	return more > 2*less && more-less > mostApart && (p.High < measured.Low || measured.High < p.Low)
}

// WithCampaign sets the result of unprofiled launches beside the prediction, and takes the step time of
// their perfect arm for it and for the split of the gain, which is then the measured one. tokens is how many
// tokens all ranks together process in a step; it is needed where the campaign measured tokens per second,
// and 0 where it is not known. Where the campaign has no time of the steps compared, a warning says why, and
// all else stays. Sides that are not comparable have no gain beside them, nor has a prediction that the measured
// gain contradicts, see unlike.
func (c *Comparison) WithCampaign(r gain.Result, tokens float64) {
	if !c.Comparable {
		return
	}
	if r.Verdict.Refused() {
		c.warn(CampaignRefused, "", "verdict", r.Verdict)
		return
	}
	p := &c.Prediction
	steps, why := r.StepsNS(gain.Perfect, tokens)
	if len(c.Kinds) > 1 {
		why = router.Warn("campaign_step_time", "", "why", "kinds")
	}
	mean, by := average(steps), *p
	if why.Code == "" {
		by.over(mean, FromCampaign)
	}
	if len(c.Kinds) <= 1 && p.unlike(r.Gain) && by.unlike(r.Gain) {
		c.warn(CampaignUnlike, "", "measured", r.Gain.Estimate, "predicted", p.Gain)
		return
	}
	p.Measured, p.Verdict = &r.Gain, r.Verdict
	if why.Code != "" {
		c.Warnings = append(c.Warnings, why)
		return
	}
	if p.StepBasis == Profiled {
		p.ProfilerOverhead = p.StepNS/mean - 1
		c.warn("profiler_overhead", "", "share", p.ProfilerOverhead)
	}
	p.over(mean, FromCampaign)
	c.split()
}

// Split says what a gain is made of, and how much of it a placement of experts can reach.
//
//	gain = time saved per step / time of a step of the perfect arm
//
// holds for the whole and for each part, so the parts add up to the gain. The whole is the gain of a
// campaign's launches where they have a step time (FromCampaign); else it is the predicted one, over
// profiled steps (Profiled), and has no rest. The parts before the rest are predicted from the traces in
// either case. It is empty, and its numbers undefined, where no gain is predicted.
type Split struct {
	Basis     StepBasis     `json:"basis"` // of Gain
	Gain      router.Number `json:"gain"`  // a fraction; Low and High are its interval
	Low       router.Number `json:"low"`
	High      router.Number `json:"high"`
	NormalNS  router.Number `json:"normal_step_ns"` // (1 + Gain)·PerfectNS
	PerfectNS router.Number `json:"perfect_step_ns"`
	Parts     []Part        `json:"parts"`
	Placement Placement     `json:"placement"`
}

// Part is a part of the time saved per step, and what it adds to the gain. Low and High are the interval of
// SavedNS over the step, known for even ranks.
type Part struct {
	Name    PartName      `json:"part"`
	SavedNS router.Number `json:"saved_ns"`
	Gain    router.Number `json:"gain"`
	Low     router.Number `json:"low"`
	High    router.Number `json:"high"`
}

// PartName is what saves the time, in words.
type PartName string

// The parts, in their order.
const (
	EvenRanks   PartName = "even ranks"    // the slowest rank of each layer − the mean
	EvenExperts PartName = "even experts"  // equal-sized expert GEMMs run faster
	Rest        PartName = "not explained" // transfer, idle GPUs, the profiler, noise
)

// Placement is what placing the experts gains alone: it evens out ranks as far as the perfect arm does, and
// leaves the size of the expert GEMMs as it is.
//
//	gain bound = saved / (normal step − saved), saved = Part.SavedNS of EvenRanks
//
// That part of the gain is larger by as much as the other parts shorten the step.
type Placement struct {
	GainBound router.Number `json:"gain_bound"` // a fraction, predicted
	Low       router.Number `json:"low"`        // from the interval of the part
	High      router.Number `json:"high"`
}

// split divides the gain that was measured, or else the predicted one.
func (c *Comparison) split() {
	p, u := c.Prediction, router.Undefined()
	s := &c.Split
	*s = Split{Gain: u, Low: u, High: u, NormalNS: u, PerfectNS: u, Parts: []Part{}, Placement: Placement{u, u, u}}
	if !p.Gain.Defined() {
		return
	}
	s.Basis, s.Gain, s.Low, s.High = p.StepBasis, p.Gain, p.Low, p.High
	if p.StepBasis == FromCampaign {
		s.Gain, s.Low, s.High = p.Measured.Estimate, p.Measured.Low, p.Measured.High
	}
	s.PerfectNS, s.NormalNS = p.StepNS, (1+s.Gain)*p.StepNS
	add := func(name PartName, ns, low, high router.Number) {
		s.Parts = append(s.Parts, Part{name, ns, ns / p.StepNS, low / p.StepNS, high / p.StepNS})
	}
	low, high := router.Number(p.ranks.Low), router.Number(p.ranks.High)
	add(EvenRanks, p.LossNS, low, high)
	add(EvenExperts, p.SavedNS-p.LossNS, u, u)
	if p.StepBasis == FromCampaign {
		add(Rest, s.NormalNS-s.PerfectNS-p.SavedNS, u, u)
	}
	alone := func(saved router.Number) router.Number { return saved / (s.NormalNS - saved) }
	s.Placement = Placement{alone(p.LossNS), alone(low), alone(high)}
}

// Known is false where no gain is predicted.
func (s Split) Known() bool { return len(s.Parts) > 0 }
