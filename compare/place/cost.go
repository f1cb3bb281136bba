package place

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/placement"
)

// Cost is what a trace tells of time: its steps, which replay with other loads of the ranks, and how much of
// the experts' time follows the load. With Follows 0.9, a rank of 1.2 times the mean load takes 1.18 of the mean time.
type Cost struct {
	Basis     string        `json:"basis"`  // always "trace"
	Source    string        `json:"source"` // the first file
	Ranks     int           `json:"ranks"`
	StepNS    router.Number `json:"step_ns"`
	Follows   router.Number `json:"time_follows_load"` // a share, at most 1
	Error     router.Number `json:"error_p95"`         // of Follows: twice its standard error, see fit
	Explained router.Number `json:"explained"`         // share of the variance of time over ranks

	kind   trace.StepKind // that is replayed
	phase  counts.Phase   // that its name says
	replay *trace.Replay
	others []*Cost           // of the other kinds of steps that are replayed
	layers map[int][]float64 // of the trace: the load of its ranks over the mean while it was recorded
}

// leastExplained is the share of the variance of time over ranks that load must explain: most of it.
const leastExplained = 0.5

// Unlike is why no time is predicted, and no placement worth a trial: load explains too little.
const Unlike = "unlike"

// NoEvidence is why no time is predicted: no trace and no campaign was given.
const NoEvidence = "no_evidence"

// Flat is why little or no time is predicted, and no placement worth a trial: load is uneven and the trace's expert
// time is even. Its kernels take as long for few tokens as for many, or it is of another run than the counts.
const Flat = "flat"

// Contradicts is why no placement is worth a trial: the counts contradict the trace's expert time.
const Contradicts = "contradicts"

// FromTrace fits the expert time of ranks in a trace to the counts of the same run. The reason says why there is no
// cost, or, with a cost, that hardly any time follows the load (Flat). The error is about counts that do not fit it.
func FromTrace(t *trace.Trace, r *counts.Record) (c *Cost, reason router.Warning, err error) {
	c = &Cost{Basis: "trace", Source: t.Exports[0].Path, Ranks: len(t.Ranks), replay: t.Replay(),
		layers: map[int][]float64{}}
	kind, others := t.OtherKinds()
	kind = cmp.Or(kind, new(trace.StepKind)) // of a capture without steps
	for _, w := range t.Warnings {
		switch w.Code {
		case trace.CountsLayers:
			return nil, reason, &input.Error{File: c.Source, Found: fmt.Sprintf("experts run in %v layers, %v have load in %s",
				w.Args["layers"], w.Args["counted"], r.Source), Try: "the trace is of another model, or of a part of it"}
		case trace.CountsContradict, trace.OtherSteps:
			return nil, doubted(w), nil
		case trace.LoadWithoutTime:
			reason = noTime(Flat, "load", w.Args["load"], "time", w.Args["time"], "unsure", w.Args["unsure"], "gain",
				max(t.Bound.Estimate, 0), "traced", kind.Name)
		}
	}
	switch {
	case t.Doubt().Code != "":
		return nil, doubted(t.Doubt()), nil
	case len(t.Ranks) < 2 || c.replay == nil || c.replay.Run == nil:
		return nil, noTime("no_replay"), nil
	}
	c.StepNS = c.replay.StepNS
	if placed, err := c.compare(*kind, r); !placed {
		return nil, noTime("no_layer"), err
	}
	for _, kind := range others {
		other := &Cost{Ranks: c.Ranks, replay: t.ReplayOf(&kind), layers: map[int][]float64{}}
		if other.replay == nil {
			continue
		}
		if placed, _ := other.compare(kind, r); placed {
			c.others = append(c.others, other)
		}
	}
	if c.predicts() {
		return c, reason, nil
	}
	if reason.Code == "" {
		reason = noTime(Unlike, "explained", c.Explained)
	}
	return nil, reason, nil
}

// compare fits the expert time of ranks in steps of a kind to their load in each layer that has some, by where the
// experts are: of counts that tell phases apart, to the load of its phase. It is false where no layer has load, or one
// is on other ranks than the trace's.
func (c *Cost) compare(kind trace.StepKind, r *counts.Record) (placed bool, err error) {
	name, _, _ := strings.Cut(kind.Name, ",")
	c.kind, c.phase = kind, counts.Phase(name)
	kinds := r.Phases()
	if at := slices.IndexFunc(kinds, func(kind *counts.Record) bool { return kind.Phase == c.phase }); at >= 0 {
		r = kinds[at]
	}
	where, byLayer := r.Placement, r.ByLayer()
	if where == nil {
		if where, err = placement.Contiguous(r.Experts, c.Ranks); err != nil {
			return false, err
		}
	}
	var loads, times []float64
	experts := c.replay.Run.Experts()
	for _, layer := range slices.Sorted(maps.Keys(experts)) {
		load := byLayer[int(layer)]
		if load.Total() == 0 {
			continue
		}
		layout, err := where.Layout(int(layer))
		if err != nil || layout.Ranks() != c.Ranks {
			return false, err
		}
		shares, mean := rankShares(layout, load.PerExpert), stat.Mean(experts[layer], nil)
		for i, share := range shares {
			loads, times = append(loads, share-1), append(times, experts[layer][i]/mean-1)
		}
		c.layers[int(layer)] = shares
	}
	c.fit(loads, times)
	return len(c.layers) > 0, nil
}

// predicts reports a fit that tells time: load explains most of it.
func (c *Cost) predicts() bool { return c.Explained >= leastExplained }

// rankShares is the load of each rank over the mean rank's: 3 of 4 slots on 2 ranks → 1.5 and 0.5.
func rankShares(l router.Layout, perExpert []int64) []float64 {
	load := router.Load{PerExpert: perExpert}
	ranks := placement.RankLoad(l, perExpert)
	floats.Scale(float64(len(ranks))/float64(load.Total()), ranks)
	return ranks
}

// fit is the line through 0 with the least squares: loads of ±0.2 and times of ±0.1 → time follows load by half. Its
// standard error is √(Σ residual²/(n−1) / Σ load²).
func (c *Cost) fit(loads, times []float64) {
	var xx, xy, yy, left float64
	for i, x := range loads {
		xx, xy, yy = xx+x*x, xy+x*times[i], yy+times[i]*times[i]
	}
	slope := xy / xx // undefined where the load is even
	for i, x := range loads {
		left += (times[i] - slope*x) * (times[i] - slope*x)
	}
	if c.Follows = router.Number(min(1, slope)); slope > 0 { // else also of even load, which explains nothing
		c.Explained = router.Number(1 - left/yy)
	}
	c.Error = router.Number(2 * math.Sqrt(left/float64(max(1, len(loads)-1))/xx))
}

// noTime is why there is no cost.
func noTime(why string, args ...any) router.Warning {
	return router.Warn("no_time", "", append(args, "why", why)...)
}

// doubted is that there is no cost because of a trace's own warning, with its values.
func doubted(by router.Warning) router.Warning {
	w := noTime("", "doubt", by.Key())
	maps.Copy(w.Args, by.Args)
	w.Args["why"] = "trace"
	return w
}

// TimeChange is the predicted change of the time of a step from the baseline to a placement, both replayed with the
// loads of a judged window. Low and High hold the replay's interval and the error of the fit, and of several windows
// the least and the largest.
type TimeChange struct {
	Estimate router.Number `json:"estimate"` // mean over windows
	Low      router.Number `json:"low"`
	High     router.Number `json:"high"`
	Basis    string        `json:"basis"`    // always "inferred"
	Windows  int           `json:"windows"`  // that it is over
	SavedNS  router.Number `json:"saved_ns"` // per step, mean over windows
	Steps    string        `json:"steps"`    // their kind: "prefill, 8192 tokens"
}

// like reports a window that is not known to be of other steps than the trace's: of another phase, or fewer slots in
// all than a step has tokens.
func (c *Cost) like(w Window) bool {
	if w.most < int64(c.kind.Tokens()) {
		return false
	}
	phases := []counts.Phase{counts.Prefill, counts.Decode}
	return c.phase == w.record.Phase || !slices.Contains(phases, c.phase) || !slices.Contains(phases, w.record.Phase)
}

// change replays the steps with what the ranks of the baseline have on a window, and of the default; nil without a
// cost, a load, or a replay that holds.
func (c *Cost) change(w seen) *TimeChange {
	if c == nil || len(w.shares) == 0 || !c.like(w.Window) {
		return nil
	}
	t := &TimeChange{Basis: "inferred", Steps: c.kind.Name, Windows: 1}
	t.Low, t.High = router.Number(math.Inf(1)), router.Number(math.Inf(-1))
	for _, follows := range []router.Number{c.Follows - c.Error, c.Follows + c.Error, c.Follows} { // the estimate is last
		follows = max(0, min(1, follows))
		g := c.replay.Run.Shift(c.loads(w.Window, w.plans[0], follows),
			c.loads(w.Window, w.plans[1], follows))
		if !g.Estimate.Defined() {
			return nil
		}
		t.Estimate, t.SavedNS = less(g.Estimate), g.SavedNS
		t.Low, t.High = min(t.Low, less(g.High)), max(t.High, less(g.Low))
	}
	return t
}

// changes are predicted for the other kinds of steps, undefined where load explains too little of their time.
func (c *Cost) changes(judged []seen) (all []TimeChange) {
	if c == nil {
		return nil
	}
	for _, other := range c.others {
		u, times := router.Undefined(), []*TimeChange(nil)
		if other.predicts() {
			for _, w := range judged {
				times = append(times, other.change(w))
			}
		}
		unknown := TimeChange{Estimate: u, Low: u, High: u, SavedNS: u, Basis: "inferred", Steps: other.kind.Name}
		all = append(all, *cmp.Or(overall(times), &unknown))
	}
	return all
}

// less is the change of time that a gain is: a gain of 0.25 → −0.2.
func less(gain router.Number) router.Number { return 1/(1+gain) - 1 }

// loads give by how much more than recorded the experts of a rank have to do by a plan, in steps of a window.
func (c *Cost) loads(w Window, p plan, follows router.Number) replay.Loads {
	steps := w.sample(c.replay.Steps)
	return func(step int) map[int32][]float64 {
		more := map[int32][]float64{}
		for layer, load := range steps[step%len(steps)] {
			traced := c.layers[layer]
			layout, placed := p.layouts[layer]
			if traced == nil || !placed || load.Total() == 0 {
				continue
			}
			shares := rankShares(layout, load.PerExpert)
			floats.Sub(shares, traced)
			floats.Scale(follows.Float64(), shares)
			more[int32(layer)] = shares
		}
		return more
	}
}

// sample is the load by layer of at most so many iterations of a window, evenly taken from all.
func (w Window) sample(most int) (loads []map[int]router.Load) {
	all := w.record.Iterations()
	n := min(most, len(all))
	at := map[int64]int{}
	for i := range n {
		at[all[i*len(all)/n]], loads = i, append(loads, map[int]router.Load{})
	}
	for _, s := range w.record.Steps() {
		if i, taken := at[s.Iteration]; taken {
			loads[i][s.Layer] = s.Load
		}
	}
	return loads
}

// overall is the mean of the changes that there are, within the bounds of all; nil for none.
func overall(changes []*TimeChange) *TimeChange {
	changes = slices.DeleteFunc(changes, func(t *TimeChange) bool { return t == nil })
	n := router.Number(len(changes))
	if n == 0 {
		return nil
	}
	all := *changes[0]
	all.Windows, all.Estimate, all.SavedNS = len(changes), 0, 0
	for _, t := range changes {
		all.Estimate, all.SavedNS = all.Estimate+t.Estimate/n, all.SavedNS+t.SavedNS/n
		all.Low, all.High = min(all.Low, t.Low), max(all.High, t.High)
	}
	return &all
}
