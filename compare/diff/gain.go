package diff

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Split is the throughput gain of balanced routing, and its parts:
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
	// with the law's error, widened by what one launch does not show (ofLaunches). Where
	// launches are late in either arm and the recorded steps change the other way, it holds their change, too.
	Low       router.Number `json:"low"`
	High      router.Number `json:"high"`
	PerfectNS router.Number `json:"perfect_step_ns"`
	Parts     []Part        `json:"parts"`
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

// noSplit is the split of no gain.
func noSplit() Split {
	u := router.Undefined()
	return Split{Gain: u, Low: u, High: u, PerfectNS: u, Parts: []Part{}}
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
}

// Launches that are late in the normal arm alone are no load: of 40 real pairs none loses more than mostLate of the
// normal step to them where the perfect arm loses less than inTime; of a slow host and a fast one, 0.25 to 0.41.
const (
	mostLate = 0.17
	inTime   = 0.05
)

// mostLess is the share of expert time that balance may save on as many tokens, and mostMore what it may cost in steps
// of manyTokens, which leave no expert without any. In 20 real pairs even experts take up to 15 % less, and never
// longer for 8,192 tokens and more; for few up to 43 %.
const mostLess, mostMore, manyTokens = 0.2, 0.1, 2048

// predict fills in Split, of two arms of which all ranks are there. It stays empty where the sides are not comparable,
// and where the steps of either cannot be replayed: without layers, steps or a second rank, or where the law does
// not hold.
func (c *Comparison) predict(a arms) {
	normal, perfect := a[0].run, a[1].run
	if !c.Comparable || len(c.Layers) == 0 || len(c.Ranks) < 2 || normal == nil || perfect == nil {
		return
	}
	if more := normal.ExpertRatio(perfect) - 1; more < -mostLess || more > mostMore && a[0].tokens >= manyTokens {
		c.refuse("experts", "change", more, "other", gain.Perfect)
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
	if late, other := normal.Late(), perfect.Late(); late > mostLate && other < inTime {
		c.refuse("late", "share", late, "other_share", other, "arm", gain.Normal, "other", gain.Perfect)
		return
	}
	change, even := normal.WithExperts(perfect), normal.EvenRanks()
	saved := func(g replay.Gain) stats.Interval {
		left := float64(g.LeftNS)
		return stats.Interval{Estimate: float64(g.SavedNS), Low: float64(g.Low) * left, High: float64(g.High) * left}
	}
	c.Split.saved, c.Split.ranks = ofLaunches(saved(change), float64(change.LeftNS)), saved(even)
	recorded, all := (normal.StepNS/perfect.StepNS-1)*float64(change.LeftNS), &c.Split.saved
	late := normal.LaunchesMatter() || perfect.LaunchesMatter()
	if late && recorded*all.Low < 0 && recorded*all.High < 0 { // surely the other way
		all.Low, all.High = min(all.Low, recorded), max(all.High, recorded)
	}
	c.Split.over(change.LeftNS, Profiled)
	if w, due := trace.WarnLate(change); due {
		c.Warnings = append(c.Warnings, w)
	}
}

// What one traced launch does not show, in pairs of vLLM and transformers on two and four GPUs that were timed without
// a profiler as well. Steps vary by hostNS from launch to launch, which decode feels most: what nine pairs of decode
// save is 0.01 to 0.13 ms off. Gains of 17 pairs of prefill are off by lost of themselves: 0 to 8 % in 15, too high by
// 20 % with EPLB, too low by 28 % with DeepGEMM. Clocks fall where all GPUs are busy, which a few steps behind an idle
// time do not show.
const (
	hostNS = 0.1e6
	lost   = 0.08
)

// ofLaunches widens the interval of the time saved by launches of which each has a gain of its own:
//
//	half-width = √(half-width over steps² + (z · LaunchSD · recorded step)² + (z · hostNS)²)
//
// Below it also holds z · lost · the time saved.
func ofLaunches(saved stats.Interval, left float64) stats.Interval {
	z := distuv.UnitNormal.Quantile((1 + gain.DefaultConfidence) / 2)
	launches := z * math.Hypot(gain.LaunchSD*(saved.Estimate+left), hostNS)
	less := z * lost * max(0, saved.Estimate)
	saved.Low = saved.Estimate - math.Hypot(math.Hypot(saved.Estimate-saved.Low, launches), less)
	saved.High = saved.Estimate + math.Hypot(saved.High-saved.Estimate, launches)
	return saved
}

// apart reports that the intervals of a measured gain and of the one predicted over a step do not meet.
func (s *Split) apart(measured gain.Gain, stepNS router.Number) bool {
	return router.Number(s.saved.High) < measured.Low*stepNS || measured.High*stepNS < router.Number(s.saved.Low)
}

// ofKind is the measured gain of the first kind of steps, where a point of the campaign is of as many tokens, else of
// the whole campaign. It notes the gains of the other kinds that are measured.
func (c *Comparison) ofKind(r gain.Result) (measured gain.Gain, verdict gain.Verdict, own bool) {
	measured, verdict = r.Gain, r.Verdict
	for _, p := range r.Main() {
		i := slices.IndexFunc(c.Kinds, func(k KindChange) bool { return k.Tokens > 0 && float64(k.Tokens) == p.Value })
		if i >= 0 {
			c.Kinds[i].Measured = &p.Gain
		}
		if i == 0 {
			measured, verdict, own = p.Gain, p.Verdict, true
		}
	}
	return measured, verdict, own || len(c.Kinds) <= 1
}

// elsewhere says why a campaign is not of the run of the traces: of other ranks or GPUs.
func (c *Comparison) elsewhere(run gain.Run) (w router.Warning, is bool) {
	all := max(len(c.Normal.Ranks), len(c.Perfect.Ranks))
	n, names, _ := strings.Cut(run.GPUs, " × ")
	gpus, _ := strconv.Atoi(n) // of one node
	if ranks := cmp.Or(run.Ranks, min(gpus, all)); ranks > 0 && ranks != all {
		return router.Warn(CampaignUnlike, "", "why", "ranks", "here", ranks, "there", all), true
	}
	for _, gpu := range slices.Concat(c.Normal.gpus, c.Perfect.gpus) {
		if names != "" && !strings.Contains(names, gpu) { // also where a report does not say
			return router.Warn(CampaignUnlike, "", "why", "gpus", "here", names, "there", gpu), true
		}
	}
	return w, false
}

// WithCampaign sets the result of unprofiled launches beside the prediction, and takes the step time of
// their perfect arm for the split of the gain, which is then the measured one. tokens is how many
// tokens all ranks together process in a step; it is needed where the campaign measured tokens per second,
// and 0 where it is not known. Where the campaign has no time of the steps compared, a warning says why, and
// all else stays. Sides that are not comparable have no gain beside them, nor has one of other ranks and GPUs; gains
// whose intervals do not meet are both told.
func (c *Comparison) WithCampaign(r gain.Result, run gain.Run, tokens float64) {
	if !c.Comparable {
		return
	}
	if r.Verdict.Refused() {
		c.warn(CampaignRefused, "", "verdict", r.Verdict)
		return
	}
	if w, is := c.elsewhere(run); is {
		c.Warnings = append(c.Warnings, w)
		return
	}
	s := &c.Split
	measured, verdict, own := c.ofKind(r)
	steps, why := r.StepsNS(tokens)
	if len(c.Kinds) > 1 {
		why = router.Warn("campaign_step_time", "", "why", "kinds")
	}
	step := s.PerfectNS
	if why.Code == "" {
		step = average(steps)
	}
	if own && s.apart(measured, s.PerfectNS) && s.apart(measured, step) {
		c.warn(CampaignApart, "", "measured", measured.Estimate, "predicted", s.Gain)
	}
	if s.Measured, s.Verdict = &measured, verdict; c.Threshold == nil {
		c.Threshold = &r.Threshold
	}
	switch {
	case why.Code != "":
		c.Warnings = append(c.Warnings, why)
	case s.Known():
		c.warn("profiler_overhead", "", "share", c.Perfect.StepNS/step-1)
		s.over(step, FromCampaign)
	}
}
