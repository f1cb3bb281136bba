package diff

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Split is the throughput gain of balanced routing, and what it is made of:
//
//	gain = time saved per step / time of a step of the perfect arm
//
// holds for the whole and for each part, so the parts add up to the gain. The whole is the gain of a
// campaign's launches where they have a step time (FromCampaign); else it is the predicted one, over
// profiled steps (Profiled), and has no rest. It is empty, and its numbers undefined, where no gain is predicted.
//
// The parts before the rest are a replay of the normal arm's steps with the perfect arm's time of experts, dispatch
// and combine, and of collectives once all ranks are there, see package replay: what hosts and waiting leave of it.
// Where the perfect arm's GPUs are faster or slower in what balance does not change, its times are scaled by as much.
type Split struct {
	Basis StepBasis     `json:"basis"` // of Gain
	Gain  router.Number `json:"gain"`  // a fraction
	// Low and High are the interval of Gain at 95 %. Of a predicted one it is over steps of one launch of each arm,
	// with the law's error, widened by how gains of launches differ (gain.LaunchSD), which one launch does not show.
	Low       router.Number `json:"low"`
	High      router.Number `json:"high"`
	PerfectNS router.Number `json:"perfect_step_ns"`
	Parts     []Part        `json:"parts"`
	Placement Placement     `json:"placement"`
	Measured  *gain.Gain    `json:"campaign"` // of the unprofiled launches; nil without a campaign
	Verdict   gain.Verdict  `json:"campaign_verdict,omitempty"`

	saved, ranks stats.Interval // per step, with the experts of the perfect arm and with even ranks alone
}

// StepBasis is where the time of a step comes from.
type StepBasis string

// The bases.
const (
	FromCampaign StepBasis = "campaign" // unprofiled launches
	Profiled     StepBasis = "profiled" // the replay
)

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

// noSplit is the split of no gain.
func noSplit() Split {
	u := router.Undefined()
	return Split{Gain: u, Low: u, High: u, PerfectNS: u, Parts: []Part{}, Placement: Placement{u, u, u}}
}

// Known is false where no gain is predicted.
func (s *Split) Known() bool { return len(s.Parts) > 0 }

// over divides the gain over a step of the perfect arm: the measured gain where launches tell that step.
func (s *Split) over(stepNS router.Number, basis StepBasis) {
	part := func(name PartName, ns stats.Interval) Part {
		by := func(ns float64) router.Number { return router.Number(ns) / stepNS }
		return Part{name, router.Number(ns.Estimate), by(ns.Estimate), by(ns.Low), by(ns.High)}
	}
	alone := func(ns float64) stats.Interval {
		return stats.Interval{Estimate: ns, Low: math.NaN(), High: math.NaN()}
	}
	whole := part("", s.saved)
	s.Basis, s.PerfectNS, s.Gain, s.Low, s.High = basis, stepNS, whole.Gain, whole.Low, whole.High
	s.Parts = []Part{part(EvenRanks, s.ranks), part(EvenExperts, alone(s.saved.Estimate-s.ranks.Estimate))}
	if basis == FromCampaign {
		s.Gain, s.Low, s.High = s.Measured.Estimate, s.Measured.Low, s.Measured.High
		s.Parts = append(s.Parts, part(Rest, alone((s.Gain*stepNS).Float64()-s.saved.Estimate)))
	}
	bound := func(ns float64) router.Number { return router.Number(ns) / ((1+s.Gain)*stepNS - router.Number(ns)) }
	s.Placement = Placement{bound(s.ranks.Estimate), bound(s.ranks.Low), bound(s.ranks.High)}
}

// mostLess is the share of expert time that balance may save on as many tokens. In 20 real pairs even
// experts take up to 15 % less.
const mostLess = 0.25

// predict fills in Split, of two arms of which all ranks are there. It stays empty where the sides are not comparable,
// and where the steps of either cannot be replayed: without layers, steps or a second rank, or where the law does
// not hold.
func (c *Comparison) predict(a arms) {
	normal, perfect := a[0].run, a[1].run
	if !c.Comparable || len(c.Layers) == 0 || len(c.Ranks) < 2 || normal == nil || perfect == nil {
		return
	}
	if less := 1 - normal.ExpertRatio(perfect); less > mostLess {
		c.refuse("experts", "share", less, "other", gain.Perfect)
		return
	}
	counted := slices.ContainsFunc(a[0].trace.Imbalance, loadOfRanks) || c.BothInOneLaunch() // where kernels are the same
	if at, by, alone := normal.OneSlower(perfect); alone && !counted {
		c.refuse("one_rank", "rank", c.Ranks[at], "by", by, "arm", gain.Normal)
		return
	}
	if !normal.Holds() || !perfect.Holds() {
		return
	}
	change, even := normal.WithExperts(perfect), normal.EvenRanks()
	saved := func(g replay.Gain) stats.Interval {
		return stats.Interval{Estimate: g.SavedNS, Low: g.Low * g.LeftNS, High: g.High * g.LeftNS}
	}
	c.Split.saved, c.Split.ranks = ofLaunches(saved(change), change.LeftNS), saved(even)
	c.Split.over(router.Number(change.LeftNS), Profiled)
	late := trace.NewWhatIf("experts of the other arm", change)
	if w, due := late.WarnLate(); due {
		c.Warnings = append(c.Warnings, w)
	}
}

// ofLaunches widens the interval of the time saved by launches of which each has a gain of its own:
//
//	half-width = √(half-width over steps² + (z · LaunchSD · recorded step)²)
func ofLaunches(saved stats.Interval, left float64) stats.Interval {
	z := distuv.UnitNormal.Quantile((1 + gain.DefaultConfidence) / 2)
	launches := z * gain.LaunchSD * (saved.Estimate + left)
	saved.Low = saved.Estimate - math.Hypot(saved.Estimate-saved.Low, launches)
	saved.High = saved.Estimate + math.Hypot(saved.High-saved.Estimate, launches)
	return saved
}

// mostApart is the difference from which a measured gain may contradict the predicted one, a fraction.
const mostApart = 0.05

// unlike reports a measured gain that contradicts the one predicted over a step: one is more than twice the other, they
// are more than mostApart apart, and their intervals do not meet. 22.9 % (19.9 to 26.0) is unlike 8.0 % (6.7 to 9.4).
func (s *Split) unlike(measured gain.Gain, stepNS router.Number) bool {
	by := func(ns float64) router.Number { return router.Number(ns) / stepNS }
	predicted := by(s.saved.Estimate)
	less, more := min(predicted, measured.Estimate), max(predicted, measured.Estimate)
	return more > 2*less && more-less > mostApart && (by(s.saved.High) < measured.Low || measured.High < by(s.saved.Low))
}

// WithCampaign sets the result of unprofiled launches beside the prediction, and takes the step time of
// their perfect arm for the split of the gain, which is then the measured one. tokens is how many
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
	s := &c.Split
	steps, why := r.StepsNS(gain.Perfect, tokens)
	if len(c.Kinds) > 1 {
		why = router.Warn("campaign_step_time", "", "why", "kinds")
	}
	step := s.PerfectNS
	if why.Code == "" {
		step = average(steps)
	}
	if len(c.Kinds) <= 1 && s.unlike(r.Gain, s.PerfectNS) && s.unlike(r.Gain, step) {
		c.warn(CampaignUnlike, "", "measured", r.Gain.Estimate, "predicted", s.Gain)
		return
	}
	s.Measured, s.Verdict = &r.Gain, r.Verdict
	switch {
	case why.Code != "":
		c.Warnings = append(c.Warnings, why)
	case s.Known():
		c.warn("profiler_overhead", "", "share", c.Perfect.StepNS/step-1)
		s.over(step, FromCampaign)
	}
}
