package replay

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Run is a run of steps of one kind, ready to be replayed.
type Run struct {
	StepNS float64 // mean recorded time of a step
	// Law is by how much replays that change nothing differ from the recording: −0.01 for
	// 1 % too short.
	Law    float64
	steps  []*replayed
	times  [3][]float64 // of steps that nothing changes, by hosts
	unseen float64      // share of the steps
	hosts  hosts        // of what-ifs
}

// lawLimit is how much replays that change nothing may differ from the recorded steps, and unseenLimit the
// share of these that nothing recorded may explain. The steps that count of real captures have up to 0.006, and
// up to 0.018; where copies are not recorded 0.055, beside a second stream on the GPU 0.15 and more.
const (
	lawLimit    = 0.02
	unseenLimit = 0.1
)

// Steps is how many steps are replayed.
func (r *Run) Steps() int { return len(r.steps) }

// New prepares steps. It is nil without any, or where one cannot be replayed: ranks ran different collectives in it, or
// wait for each other in different orders.
func New(steps []Step) *Run {
	run, l := &Run{}, measure(steps)
	for i := range steps {
		s := &steps[i]
		m, alike := s.meet()
		if !alike {
			return nil
		}
		p := &replayed{number: i, meetings: m}
		last := math.Inf(-1)
		for r, kernels := range s.Ranks {
			c := cutter{latencies: l, free: s.Free[r],
				now: func(ns int64) float64 { return float64(ns + m.add[r] - s.Free[0]) }}
			p.free = append(p.free, c.now(c.free))
			c.cut(kernels, m.of[r])
			p.ranks, p.unseen = append(p.ranks, c.list), p.unseen+c.unseen/float64(len(s.Ranks))
			last = max(last, c.now(c.free))
		}
		p.place()
		p.recorded = last - slices.Max(p.free)
		p.rest = math.Log(p.run(change{hosts: inTime, from: p.of[Experts]}) / p.of[Experts].total())
		run.steps = append(run.steps, p)
	}
	run.dropApart()
	if run.decide(); math.IsNaN(run.Law) {
		return nil
	}
	return run
}

// Only is the run of some of its steps, by their positions among the steps that New was given; nil for none.
func (r *Run) Only(wanted func(step int) bool) *Run {
	some := &Run{steps: slices.DeleteFunc(slices.Clone(r.steps), func(s *replayed) bool { return !wanted(s.number) })}
	if len(some.steps) == 0 {
		return nil
	}
	some.decide()
	return some
}

// mostApart is the share of a step by which its ranks may begin it apart. They leave the collective
// that ends the step before together, up to 0.1 % of a step in real captures; the first step of a
// recording they begin up to a whole one apart, and a busy rank that begins early costs nothing.
const mostApart = 0.01

// alikeSteps is how much longer or shorter a step may take without its experts, over what these take, and be like
// another: in 470 steps of real kinds one is within 0.12, or 0.17 beside a second stream. None was within 0.29 where
// another process had a rank's GPU, and within 0.40 where a collective took 1.8 ms longer.
const alikeSteps = 0.2

// dropApart leaves out steps that ranks begin apart, and those that are like no other, if two others are left.
func (r *Run) dropApart() {
	apart := func(s *replayed) bool { return slices.Max(s.free)-slices.Min(s.free) > mostApart*s.recorded }
	unlike := func(s *replayed) bool {
		like := func(o *replayed) bool { return o != s && math.Abs(o.rest-s.rest) <= alikeSteps }
		return !slices.ContainsFunc(r.steps, like)
	}
	for _, out := range []func(*replayed) bool{unlike, apart} {
		if whole := slices.DeleteFunc(slices.Clone(r.steps), out); len(whole) > 1 {
			r.steps = whole
		}
	}
}

// Launches are late between ranks by chance up to chance of a step: three steps of a healthy run
// have 2 %, of one with a slow host 9 %. Where steps in time take less than hostBound of what was
// recorded, launches make most of the step, with a profiler or without. Launches that are late on every
// rank are the profiler's up to profiler of a step: real steps that are as long without it have up to
// 0.09, and host-bound ones 0.16 and more.
const (
	chance    = 0.05
	hostBound = 0.5
	profiler  = 0.12
)

// decide replays what was recorded, and decides when the hosts of what-ifs launch.
func (r *Run) decide() {
	r.times = r.changed(func(*replayed) change { return change{} })
	sum := func(h hosts) float64 { return floats.Sum(r.times[h]) }
	recorded := 0.0
	for _, s := range r.steps {
		recorded, r.unseen = recorded+s.recorded, r.unseen+s.unseen
	}
	r.StepNS, r.unseen, r.Law = recorded/float64(len(r.steps)), r.unseen/recorded, sum(asRecorded)/recorded-1
	switch {
	case sum(inTime) < hostBound*sum(asRecorded), sum(together) < (1-profiler)*sum(asRecorded):
		r.hosts = asRecorded
	case sum(inTime) < (1-chance)*sum(together):
		r.hosts = together
	default:
		r.hosts = inTime
	}
}

// Undecided reports that launches are late between ranks by more than chance, and do not make most
// of the step: without a profiler less of a gain may be lost to them.
func (r *Run) Undecided() bool { return r.hosts == together }

// LaunchesMatter reports that launches are late by more than chance, under the profiler alone or without it.
func (r *Run) LaunchesMatter() bool { return r.hosts != inTime }

// Late is the share of the recorded steps that kernels waited for launches.
func (r *Run) Late() float64 { return 1 - floats.Sum(r.times[inTime])/floats.Sum(r.times[asRecorded]) }

// Holds reports whether the law holds.
func (r *Run) Holds() bool { return math.Abs(r.Law) <= lawLimit && r.unseen <= unseenLimit }

// Gain is the gain in throughput of a change, saved time over what is left, with its interval at 95 % over steps. The
// interval holds the law's error, and what other launches would leave of the gain. All is undefined where the law does
// not hold.
type Gain struct {
	Estimate router.Number `json:"gain"` // a fraction
	Low      router.Number `json:"gain_low"`
	High     router.Number `json:"gain_high"`
	SavedNS  router.Number `json:"saved_ns"`     // per step
	LeftNS   router.Number `json:"left_ns"`      // of a step
	InTime   router.Number `json:"gain_in_time"` // if no launch were late
}

// NoGain is the gain of what is not replayed.
func NoGain() Gain {
	u := router.Undefined()
	return Gain{u, u, u, u, u, u}
}

// confidence of the intervals.
const confidence = 0.95

// gain compares steps as they were with changed ones.
func (r *Run) gain(changed [3][]float64) Gain {
	if !r.Holds() {
		return NoGain()
	}
	estimate := func(h hosts) router.Number {
		return router.Number(floats.Sum(r.times[h])/floats.Sum(changed[h]) - 1)
	}
	before, after := r.times[r.hosts], changed[r.hosts]
	saved, left := stat.Mean(before, nil)-stat.Mean(after, nil), stat.Mean(after, nil)
	g := Gain{SavedNS: router.Number(saved), LeftNS: router.Number(left), InTime: estimate(inTime)}
	g.Estimate, g.Low, g.High = overSteps(before, after)
	others := []hosts{asRecorded, together, inTime}
	if r.hosts == asRecorded { // where launches make most of the step, they stay
		others = []hosts{together}
	}
	for _, h := range others {
		g.Low, g.High = min(g.Low, estimate(h)), max(g.High, estimate(h))
	}
	law := router.Number(math.Abs(r.Law))
	g.Low, g.High = g.Low-law, g.High+law
	return g
}

// overSteps is Σ before / Σ after − 1, with a t interval of the logarithms of the steps' ratios.
func overSteps(before, after []float64) (estimate, low, high router.Number) {
	logs := make([]float64, len(before))
	for i := range before {
		logs[i] = math.Log(before[i] / after[i])
	}
	t, whole := stats.PairedT(logs, confidence), floats.Sum(before)/floats.Sum(after)
	bound := func(by float64) router.Number { return router.Number(whole*math.Exp(by-t.Estimate) - 1) }
	return router.Number(whole - 1), bound(t.Low), bound(t.High)
}

// whatIf replays every step with what of gives for it.
func (r *Run) whatIf(of func(*replayed) change) Gain { return r.gain(r.changed(of)) }

// changed gives the times of the steps with what of gives for each, by hosts.
func (r *Run) changed(of func(*replayed) change) (changed [3][]float64) {
	for _, s := range r.steps {
		c := of(s)
		for h := range changed {
			c.hosts = hosts(h)
			changed[h] = append(changed[h], s.run(c))
		}
	}
	return changed
}

// EvenRanks has every rank's experts take the mean of the ranks that meet, layer by layer.
func (r *Run) EvenRanks() Gain { return r.even(Experts) }

// EvenTokens has the work that follows a rank's own tokens take the mean of the ranks that meet.
// Attention follows the context as well, which it does not know.
func (r *Run) EvenTokens() Gain { return r.even(Tokens) }

func (r *Run) even(class Class) Gain {
	return r.whatIf(func(s *replayed) change {
		mean := byLayer{}
		for layer, ranks := range s.of[class] {
			sum, n, group := make([]float64, len(ranks)), make([]float64, len(ranks)), s.meetings.group
			for r, ns := range ranks {
				sum[group[r]], n[group[r]] = sum[group[r]]+ns, n[group[r]]+1
			}
			for r := range ranks {
				mean[layer] = append(mean[layer], sum[group[r]]/n[group[r]])
			}
		}
		return change{class: class, from: s.of[class], to: mean}
	})
}

// Loads give by how much more the experts of a rank have to do in a step, over the mean of its layer, by layer
// and rank. Steps count from 0; layers without any stay.
type Loads func(step int) map[int32][]float64

// Shift is what it gains that experts have the second loads and not the first. Experts of 100 and 300 ns on two
// ranks take 200 and 200 with loads of 0.5 and −0.5.
func (r *Run) Shift(from, to Loads) Gain {
	by := func(loads Loads) [3][]float64 {
		return r.changed(func(s *replayed) change {
			c := change{from: s.of[Experts], to: byLayer{}}
			for layer, more := range loads(s.number) {
				if ranks := c.from[layer]; len(ranks) == len(more) {
					mean := stat.Mean(ranks, nil)
					for i, ns := range ranks {
						c.to[layer] = append(c.to[layer], max(0, ns+more[i]*mean))
					}
				}
			}
			return c
		})
	}
	before := *r
	before.times = by(from)
	return before.gain(by(to))
}

// mean is the work of a class in a step, mean over steps.
func (r *Run) mean(class Class) byLayer {
	mean := byLayer{}
	for _, s := range r.steps {
		for layer, ranks := range s.of[class] {
			floats.AddScaled(mean.at(layer, len(ranks)), 1/float64(len(r.steps)), ranks)
		}
	}
	return mean
}

// Experts is the mean time that the experts of each rank take in a step, by layer.
func (r *Run) Experts() map[int32][]float64 { return r.mean(Experts) }

// ExpertsNS is the time that experts take in all steps, mean over ranks.
func (r *Run) ExpertsNS() float64 { return r.mean(Experts).total() * float64(len(r.steps)) }

// slower is by how much longer the work that follows tokens takes than in another run, as by slower GPUs; 1 where
// either has none.
func (r *Run) slower(other *Run) float64 {
	if own, tokens := r.mean(Tokens).total(), other.mean(Tokens).total(); own > 0 && tokens > 0 {
		return own / tokens
	}
	return 1
}

// ExpertRatio is the mean time of another run's experts over this run's, scaled by the work that
// follows tokens.
func (r *Run) ExpertRatio(other *Run) float64 {
	return other.mean(Experts).total() / r.mean(Experts).total() * r.slower(other)
}

// WithExperts has the experts take the times of another run of equal sizes, layer by layer and rank by rank. The work
// that follows tokens is longer by how much slower the GPUs are, at which experts may be as much slower, or not: they
// are scaled by half of it, and the interval holds both. Layers that the other run does not know stay. Collectives
// take from the last arrival on as long as in the other run, where ranks that arrive together get in each other's
// way: 3.6 % longer over even experts of GPT-OSS.
func (r *Run) WithExperts(other *Run) Gain {
	to, own, slower, transfer := other.mean(Experts), r.mean(Tokens).total(), r.slower(other), 0.0
	if before := r.transfer(); before > 0 && own > 0 {
		transfer = other.transfer() / before
	}
	by := func(exponent float64) Gain { // of the ratio of the GPUs
		return r.whatIf(func(s *replayed) change {
			size, scaled := math.Pow(slower, exponent), byLayer{}
			if own > 0 {
				size *= s.of[Tokens].total() / own
			}
			for layer, ranks := range to {
				scaled[layer] = floats.ScaleTo(make([]float64, len(ranks)), size, ranks)
			}
			return change{from: s.of[Experts], to: scaled, transfer: transfer}
		})
	}
	g, same, scaled := by(0.5), by(0), by(1)
	g.Low, g.High = min(g.Low, same.Estimate, scaled.Estimate), max(g.High, same.Estimate, scaled.Estimate)
	return g
}

// transfer is how long a rank stays in collectives of a step from the last arrival on, mean over ranks.
func (r *Run) transfer() (ns float64) {
	stays := r.Stays()
	for _, stay := range stays {
		ns += stay.TransferNS / float64(len(stays))
	}
	return ns
}

// Load that one rank has more of, others have less of: in 13 real pairs what the other ranks' experts take otherwise,
// layer by layer, is 0.08 (DeepGEMM, which pads them) to 1.6 of what the experts of the busiest take longer. In
// balanced captures of two launches whose experts take 5 to 30 % longer on one rank it is up to 0.03.
const (
	standStill  = 0.05
	leastSlower = 0.02
)

// OneSlower is the rank whose experts take longer than in another run while every other rank's take
// as long, and by how much: 0.3 if 1.3 times as long. A rank without experts in the other run is not slower.
func (r *Run) OneSlower(other *Run) (rank int, by float64, ok bool) {
	n, to, scale := len(r.steps[0].ranks), other.mean(Experts), r.slower(other)
	longer, apart, whole := make([]float64, n), make([]float64, n), make([]float64, n) // over layers
	own := r.mean(Experts)
	for _, layer := range own.layers() {
		for i, ns := range own[layer][:min(n, len(to[layer]))] {
			before := scale * to[layer][i]
			longer[i], apart[i], whole[i] = longer[i]+ns-before, apart[i]+math.Abs(ns-before), whole[i]+before
		}
	}
	rank = floats.MaxIdx(longer)
	return rank, longer[rank] / whole[rank], whole[rank] > 0 && longer[rank] > leastSlower*whole[rank] &&
		floats.Sum(apart)-apart[rank] < standStill*longer[rank]
}
