package diff

import (
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Split says what a gain is made of, and how much of it a placement of experts can reach.
//
//	gain = time saved per step / time of a step of the perfect arm
//
// holds for the whole and for each part, so the parts add up to the gain. The whole is the
// gain of a campaign's launches where they have a step time (FromCampaign); else it is
// the predicted one, over profiled steps (Profiled), and has neither waiting nor a rest.
// The parts before the rest are predicted from the traces in either case. It is empty, and
// its numbers undefined, where no gain is predicted.
type Split struct {
	Basis      StepBasis     `json:"basis"` // of Gain
	Gain       router.Number `json:"gain"`  // a fraction; Low and High are its interval at Confidence
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence router.Number `json:"confidence"`
	NormalNS   router.Number `json:"normal_step_ns"` // (1 + Gain)·PerfectNS
	PerfectNS  router.Number `json:"perfect_step_ns"`
	Parts      []Part        `json:"parts"`
	Placement  Placement     `json:"placement"`
}

// Part is a part of the time saved per step, and what it adds to the gain. Low and High
// are the interval of SavedNS over the step, see Prediction.Low; undefined for the rest.
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
	// straggler loss, compute of all phases: the slowest rank of each layer − the mean
	EvenRanks PartName = "even ranks"
	// mean expert time: equal-sized expert GEMMs run faster
	EvenExperts PartName = "even experts"
	Rest        PartName = "not explained" // transfer, idle GPUs, the profiler, noise
)

// Placement is what placing the experts gains alone: it evens out ranks as far as the
// perfect arm does, and leaves the size of the expert GEMMs as it is.
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
func (c *Comparison) split(measured *gain.Gain) {
	p, u := c.Prediction, router.Undefined()
	c.Split = Split{Gain: u, Low: u, High: u, Confidence: u, NormalNS: u, PerfectNS: u, Parts: []Part{},
		Placement: Placement{u, u, u}}
	if !p.Gain.Defined() {
		return
	}
	s := &c.Split
	s.Basis, s.Gain, s.Low, s.High, s.Confidence = p.StepBasis, p.Gain, p.Low, p.High, router.Number(p.Confidence)
	if measured != nil {
		s.Basis, s.Gain, s.Low, s.High, s.Confidence = FromCampaign, measured.Estimate, measured.Low, measured.High,
			router.Number(measured.Confidence)
	}
	s.PerfectNS, s.NormalNS = p.StepNS, (1+s.Gain)*p.StepNS
	add := func(name PartName, ns, low, high router.Number) {
		s.Parts = append(s.Parts, Part{name, ns, ns / p.StepNS, low / p.StepNS, high / p.StepNS})
	}
	for i, name := range []PartName{EvenRanks, EvenExperts} {
		add(name, router.Number(p.parts[i].Estimate), router.Number(p.parts[i].Low), router.Number(p.parts[i].High))
	}
	if measured != nil {
		rest := s.NormalNS - s.PerfectNS - p.SavedNS
		add(Rest, rest, u, u)
	}
	ranks := p.parts[0]
	s.Placement.GainBound, s.Placement.Low, s.Placement.High = s.alone(router.Number(ranks.Estimate)),
		s.alone(router.Number(ranks.Low)), s.alone(router.Number(ranks.High))
}

// alone is the gain of a normal step that is this much shorter.
func (s Split) alone(saved router.Number) router.Number { return saved / (s.NormalNS - saved) }

// Known is false where no gain is predicted.
func (s Split) Known() bool { return len(s.Parts) > 0 }
