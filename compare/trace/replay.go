package trace

import (
	"encoding/json"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/router"
)

// Replay is what steps of one kind would take if something in them were otherwise, see package
// replay.
type Replay struct {
	Kind  int `json:"step_kind"`
	Steps int `json:"steps"`
	// Little says that its steps have less than a tenth of the expert time, though the most of their phase.
	Little bool `json:"little_expert_time"`
	// StepNS is the mean recorded time of a step, Law by how much a replay that changes nothing
	// differs from it, a fraction.
	StepNS router.Number `json:"step_ns"`
	Law    router.Number `json:"law"`
	// Undecided says that launches are late between ranks by more than chance, as they may be under a profiler alone.
	Undecided  bool        `json:"late_undecided"`
	EvenRanks  replay.Gain `json:"even_ranks"`  // see replay.Run.EvenRanks
	EvenTokens replay.Gain `json:"even_tokens"` // see replay.Run.EvenTokens

	Run   *replay.Run `json:"-"` // for other changes; nil of a result that was read again
	ns    float64     // of experts, in all steps
	steps []int       // that were replayed
	hosts [][]deeds   // by step of these and rank
}

// UnmarshalJSON reads what an earlier version wrote, too: a gain that is not there is unknown.
func (r *Replay) UnmarshalJSON(b []byte) error {
	type plain Replay
	q := plain{EvenRanks: replay.NoGain(), EvenTokens: replay.NoGain()}
	err := json.Unmarshal(b, &q)
	*r = Replay(q)
	return err
}

// Of is the run of some of the steps alone, nil for none.
func (r *Replay) Of(steps []int) *replay.Run {
	if r.Run == nil {
		return nil
	}
	return r.Run.Only(func(i int) bool { return slices.Contains(steps, r.steps[i]) })
}

// leastExperts is the share of all expert time from which a kind of steps counts.
const leastExperts = 0.1

// replays fills Replays, where every rank of the run is there: one that is missing may be the
// one that all wait for. A kind that cannot be replayed has none, nor one with little time beside a larger one of
// its phase, prefill or decode.
func (r *reduction) replays() {
	if len(r.ranks) < 2 || int(r.trace.World) > len(r.ranks) {
		return
	}
	whole, found, most := 0.0, []Replay(nil), map[string]float64{} // most of a kind in each phase
	worth := slices.Concat(r.trace.times.StepsOf(imbalance.Counts), r.trace.times.StepsOf(imbalance.OtherKind))
	for _, k := range r.trace.StepKinds {
		p := Replay{Kind: k.Kind}
		p.steps = slices.DeleteFunc(slices.Clone(k.Steps), func(step int) bool { return !slices.Contains(worth, step) })
		var list []replay.Step
		list, p.hosts = r.stepsToReplay(p.steps)
		if p.Run = replay.New(list); p.Run != nil {
			phase := k.batches[0].String()
			p.ns = p.Run.ExpertsNS()
			whole, most[phase] = whole+p.ns, max(most[phase], p.ns)
			found = append(found, p)
		}
	}
	for _, p := range found {
		run, first := p.Run, r.trace.StepKinds[p.Kind].batches[0]
		p.Little = p.ns < leastExperts*whole
		if !p.Little || first.Named && !first.Dummy && p.ns == most[first.String()] {
			p.Steps, p.StepNS, p.Law = run.Steps(), router.Number(run.StepNS), router.Number(run.Law)
			p.Undecided = run.Undecided()
			p.EvenRanks, p.EvenTokens = run.EvenRanks(), run.EvenTokens()
			r.trace.Replays = append(r.trace.Replays, p)
		}
	}
}

// LateLaunches is the code of the warning that late launches leave less to gain, as they may
// under a profiler alone.
const LateLaunches = "late_launches"

// leastOpen is how much less is gained with launches as they were than with launches in time from which
// it is told.
const leastOpen = 0.01

// WarnLate gives the warning, if it is due.
func WarnLate(g replay.Gain) (warning router.Warning, due bool) {
	return router.Warn(LateLaunches, "", "gain", g.InTime), g.InTime-g.Estimate > leastOpen
}

// Bound is what uneven expert time over ranks costs in the steps that count, from one arm alone. What even experts
// would gain is inferred: no step with balanced routing was measured, and experts of equal size may also run faster,
// which it does not hold.
type Bound struct {
	replay.Gain               // of even ranks; undefined where Undecided says why, and without a replay
	LossNS      router.Number `json:"loss_ns"` // see imbalance.Times.Loss
	StepNS      router.Number `json:"step_ns"` // of a step under the profiler, see Trace.StepNS
	Steps       int           `json:"steps"`
	Of          imbalance.Of  `json:"of"`
}

// Replay gives the replay of the steps that count.
func (t *Trace) Replay() *Replay {
	kind, _ := t.OtherKinds()
	return t.ReplayOf(kind)
}

// ReplayOf gives the replay of a kind of steps, nil where there is none.
func (t *Trace) ReplayOf(kind *StepKind) *Replay {
	for i := range t.Replays {
		if kind != nil && t.Replays[i].Kind == kind.Kind {
			return &t.Replays[i]
		}
	}
	return nil
}

// mostStay is how many times as long the shortest stays in collectives behind experts may be in some
// layers as in others: in 25 real kinds of steps 1.35 at most, 1.06 at prefill; 1.6 and more where a busy
// rank is missing. In all layers they are at most 1.15 times as long as in collectives elsewhere, and 2.3 and more.
const mostStay = 1.5

// judgeReplay takes the gain of even ranks from the replay of the steps that count; where the law does not hold, it
// is undefined. It warns of ranks that do not meet, and of one that all wait for and that is not there.
func (r *reduction) judgeReplay() {
	p := r.trace.Replay()
	if p == nil {
		return
	}
	if p.Run.Split() {
		r.warn(rankGroups)
	} else if p.Run.StayRatio() > mostStay {
		r.warn(rankGroups, "why", "unseen", "ratio", p.Run.StayRatio())
	}
	if r.trace.Bound.LossNS.Defined() {
		r.trace.Bound.Gain = p.EvenRanks
		if late, due := WarnLate(p.EvenRanks); due {
			r.trace.Warnings = append(r.trace.Warnings, late)
		}
	}
}

// stepsToReplay gives what the ranks did in steps, and what their hosts did while the GPUs were free.
func (r *reduction) stepsToReplay(steps []int) (list []replay.Step, hosts [][]deeds) {
	at := imbalance.Places(steps)
	list, hosts = make([]replay.Step, len(steps)), make([][]deeds, len(steps))
	for i := range steps {
		hosts[i] = make([]deeds, len(r.ranks))
		list[i] = replay.Step{Ranks: make([][]replay.Kernel, len(r.ranks)), Free: make([]int64, len(r.ranks))}
	}
	for rank, p := range r.ranks {
		free := int64(never)
		for e, place := range p.each() {
			free = max(free, p.events[0].Start)
			if n, wanted := at[int(place.Step)]; wanted {
				s := &list[n]
				if len(s.Ranks[rank]) == 0 {
					s.Free[rank] = min(free, e.Start)
				}
				s.Ranks[rank] = append(s.Ranks[rank], r.toReplay(p, e))
				if e.Late != inTime {
					hosts[n][rank][e.Late] += max(0, e.Start-free)
				}
			}
			free = max(free, e.end())
		}
	}
	return list, hosts
}

// toReplay gives one kernel with what its work follows.
func (r *reduction) toReplay(p *rankEvents, e *event) replay.Kernel {
	place, class := p.place(e), p.class(e)
	k := replay.Kernel{Start: e.Start, End: e.end(), Launch: replay.None, Layer: place.Layer,
		Collective: replay.None, Class: replay.Fixed, Replayed: e.Replayed, Waited: replay.None}
	if e.Queued >= 0 {
		k.Launch = e.launched()
	}
	if e.Waited > 0 {
		k.Resumed = k.Launch - int64(e.Since)
		k.Waited = k.Resumed - int64(e.Waited)
	}
	switch phase := place.Phase; {
	case class.Collective && !class.FusedExperts():
		k.Collective = p.of.common[e.Name]
		if n := slices.Index(p.streams, e.Stream); n > 0 { // it meets others of its microbatch
			k.Collective += int32(n * len(r.names.Values))
		}
	case phase == PhaseDispatch || phase == PhaseExperts || phase == PhaseCombine:
		if r.judged(router.OptInt(place.Layer)) {
			k.Class = replay.Experts
			k.Beside = r.trace.times.Of == imbalance.OfGEMM && !class.GEMM && !class.FusedExperts()
		}
	case phase == PhaseAttention || phase == PhaseOther:
		k.Class = replay.Tokens
	}
	return k
}
