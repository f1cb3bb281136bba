package diff

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Split says what a gain is made of, and how much of it a placement of experts can reach.
//
//	gain = time saved per step / time of a step of the perfect arm
//
// holds for the whole and for each part, so the parts add up to the gain. The gain is that
// of a campaign's launches where their step time is known (FromCampaign), else that of
// the step times of these traces (Profiled). The parts before the rest are predicted from
// the traces in either case. It is empty, and its numbers undefined, where either is not
// known.
type Split struct {
	Basis StepBasis `json:"basis"` // of Gain
	// Gain is a fraction; Low and High are its interval at Confidence, undefined where
	// it is profiled: steps of one launch do not vary as launches do.
	Gain       router.Number `json:"gain"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence router.Number `json:"confidence"`
	NormalNS   router.Number `json:"normal_step_ns"` // (1 + Gain)·PerfectNS
	PerfectNS  router.Number `json:"perfect_step_ns"`
	Parts      []Part        `json:"parts"`
	Placement  Placement     `json:"placement"`
}

// Part is a part of the time saved per step, and what it adds to the gain. Low and High
// are the interval of SavedNS over the step, see Prediction.Low; undefined for waiting
// and the rest.
type Part struct {
	Name    PartName      `json:"part"`
	SavedNS router.Number `json:"saved_ns"`
	Gain    router.Number `json:"gain"`
	Low     router.Number `json:"low"`
	High    router.Number `json:"high"`
}

// PartName is what saves the time.
type PartName string

// The parts, in their order.
const (
	EvenRanks    PartName = "ranks"   // straggler loss, compute of all phases: the slowest rank of each layer − the mean
	EvenExperts  PartName = "experts" // mean expert time: equal-sized expert GEMMs run faster
	OtherCompute PartName = "other_compute"
	// OtherWaiting is what waiting at the collectives behind the experts changed by beyond
	// the straggler loss: negative where ranks waited for something else than compute all
	// the same, such as late hosts.
	OtherWaiting PartName = "waiting"
	Rest         PartName = "rest" // not explained: transfer, idle GPUs, the profiler, noise
)

// Words says it to people.
func (p PartName) Words() string {
	switch p {
	case EvenRanks:
		return "evening out ranks"
	case EvenExperts:
		return "evening out experts (equal-sized expert GEMMs)"
	case OtherCompute:
		return "other compute"
	case OtherWaiting:
		return "other waiting"
	}
	return "not explained"
}

// Placement is what placing the experts can win alone: it evens out ranks, and leaves the
// size of the expert GEMMs as it is.
//
//	gain bound = saved / (normal step − saved), saved = Part.SavedNS of EvenRanks
//
// It lies below that part of the gain, because the step that is left is longer.
type Placement struct {
	GainBound router.Number `json:"gain_bound"` // a fraction, predicted
	Low       router.Number `json:"low"`        // from the interval of the part
	High      router.Number `json:"high"`
	// Recovered is the share of the excess load that a placement took away on counts it was
	// not learned from, (contiguous − judged) / (contiguous − 1) of the max/mean over ranks;
	// RecoveredGain is GainBound of that share of the saved time, which takes time to
	// follow load. Undefined without such counts; Held then says why.
	Recovered     router.Number `json:"recovered_share"`
	RecoveredGain router.Number `json:"recovered_gain"`
	Held          string        `json:"held_out"` // what was learned and judged; empty without counts
}

// splitOf is the Split without a step time.
func splitOf() Split {
	u := router.Undefined()
	return Split{Gain: u, Low: u, High: u, Confidence: u, NormalNS: u, PerfectNS: u, Parts: []Part{}, Placement: Placement{u, u, u, u, u, ""}}
}

// split divides a gain over steps of the perfect arm.
func (c *Comparison) split(whole router.Number, basis StepBasis) {
	p := c.Prediction
	s := splitOf()
	if c.Split = s; !whole.Defined() || !p.StepNS.Defined() || !p.SavedNS.Defined() {
		return
	}
	s.Basis, s.Gain, s.PerfectNS, s.NormalNS = basis, whole, p.StepNS, (1+whole)*p.StepNS
	rest := s.NormalNS - s.PerfectNS
	add := func(name PartName, saved stats.Interval) {
		ns := router.Number(saved.Estimate)
		s.Parts = append(s.Parts, Part{name, ns, ns / p.StepNS, router.Number(saved.Low) / p.StepNS, router.Number(saved.High) / p.StepNS})
		rest -= ns
	}
	none := router.Undefined().Float64()
	for i, name := range []PartName{EvenRanks, EvenExperts, OtherCompute} {
		add(name, p.parts[i])
	}
	if ns := c.otherWaiting(); ns.Defined() {
		add(OtherWaiting, stats.Interval{Estimate: ns.Float64(), Low: none, High: none})
	}
	add(Rest, stats.Interval{Estimate: rest.Float64(), Low: none, High: none})
	ranks := p.parts[0]
	s.Placement.GainBound, s.Placement.Low, s.Placement.High = s.alone(router.Number(ranks.Estimate)), s.alone(router.Number(ranks.Low)), s.alone(router.Number(ranks.High))
	c.Split = s
}

// alone is the gain of a normal step that is this much shorter.
func (s Split) alone(saved router.Number) router.Number { return saved / (s.NormalNS - saved) }

// otherWaiting is what the arms' waiting differs by beyond their straggler loss, over the
// layers of which waiting is known; undefined where there are none.
func (c *Comparison) otherWaiting() router.Number {
	if len(c.Waits) == 0 {
		return router.Undefined()
	}
	normal, perfect := c.Waiting()
	saved := normal - perfect
	for i := 0; i < len(c.Waits); i += 2 { // both arms of a layer
		for _, s := range c.Stragglers {
			if s.Layer == c.Waits[i].Layer {
				saved += s.Change.DifferenceNS
			}
		}
	}
	return saved
}

// WithPlacement sets what a placement did to the max/mean of the load over ranks on
// counts that it was not learned from, and says what held them apart. Undefined numbers
// leave the share undefined: held then says what is missing.
func (c *Comparison) WithPlacement(contiguous, judged router.Number, held string) {
	p := &c.Split.Placement
	if p.Held = held; contiguous > 1 && len(c.Split.Parts) > 0 {
		p.Recovered = (contiguous - judged) / (contiguous - 1)
		p.RecoveredGain = c.Split.alone(p.Recovered * c.Split.Parts[0].SavedNS)
	}
}

// Sentence reconciles the parts with the whole; empty where it is undefined.
func (s Split) Sentence() string {
	if !s.Gain.Defined() {
		return ""
	}
	of := "profiled steps"
	if s.Basis == FromCampaign {
		of = "measured"
	}
	parts := make([]string, len(s.Parts))
	for i, p := range s.Parts {
		parts[i] = p.Name.Words() + " " + quantity.Change(p.Gain)
	}
	return fmt.Sprintf("%s (%s) = %s", quantity.Change(s.Gain), of, strings.Join(parts, ", "))
}

// Sentence says what a placement can reach; empty where it is undefined.
func (p Placement) Sentence() string {
	switch {
	case !p.GainBound.Defined():
		return ""
	case !(p.GainBound > 0):
		return "a placement alone wins nothing"
	}
	return "a placement alone wins at most " + quantity.Change(p.GainBound)
}
