package place

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// Cost is the time of a rank's expert work in one layer and step, fitted to a trace by
// non-negative least squares of the relative error:
//
//	time = FixedNS + SlotNS · slots of the rank + ExpertNS · its active experts
//
// A parameter that the times cannot identify is 0. A fit is a model: what
// follows from it is inferred.
type Cost struct {
	Basis    string        `json:"basis"`  // always "trace"
	Source   string        `json:"source"` // the first file
	Ranks    int           `json:"ranks"`
	Of       imbalance.Of  `json:"of"` // the time that is fitted
	FixedNS  router.Number `json:"fixed_ns"`
	SlotNS   router.Number `json:"slot_ns"` // undefined where the slots of one step are not known
	ExpertNS router.Number `json:"active_expert_ns"`
	Slots    router.Number `json:"slots_per_step"`  // of one layer, all ranks; likewise
	TopK     int           `json:"top_k,omitempty"` // 0 where not known
	StepNS   router.Number `json:"step_ns"`
	// StepBasis is "profiled", "measured" or "campaign", empty where StepNS is undefined.
	StepBasis string `json:"step_basis"`
	LateHosts bool   `json:"late_hosts"` // in the trace, see wait.Waiting
	// of balanced routing, which no placement should exceed; nil without a campaign
	Measured *gain.Gain `json:"campaign"`
	HeldOut  []HeldOut  `json:"held_out"` // one

	slots float64 // of the steps that time is predicted for, in the unit of the fit
	fit   [3]float64
}

// HeldOut is the error of fits on the layers that they were not fitted to: |predicted/measured − 1|,
// where one layer at a time is left out.
type HeldOut struct {
	Groups int           `json:"groups"` // layers
	N      int           `json:"n"`      // ranks of layers
	Median router.Number `json:"median_error"`
	P90    router.Number `json:"p90_error"`
	// Change bounds the error of the predicted change from one rank to another of the same layer
	// that has less work, in 95 % of cases: |change − predicted change| of the time before.
	Change router.Number `json:"change_error_p95"`
}

// observation is the measured time of a rank in a layer, and the work behind it.
type observation struct {
	layer, rank       int
	slots, active, ns float64
}

func (o observation) at(c [3]float64) float64 { return c[0] + c[1]*o.slots + c[2]*o.active }

// leastLayers leave two to fit to where one is left out, and still tell cost from chance.
const leastLayers = 3

// FromTrace fits the expert time of a trace to the counts of the same run, of which
// perStep are the slots of a layer in one step (0: what one recorded step has). The
// reason says why there is no cost; the error is of reading the counts.
func FromTrace(t *trace.Trace, r *counts.Record, perStep float64, topK int) (c *Cost, reason router.Warning,
	err error) {
	layers, times := map[int]*imbalance.Layer{}, t.Times(nil)
	for _, l := range times.Judged() {
		if l.Number.Defined() && len(l.Ranks) == len(t.Ranks) && len(l.Experts) > 0 {
			number := int(l.Number)
			if s := t.Structure; s != nil && s.Counted != nil {
				number = s.Counted[number]
			}
			layers[number] = l
		}
	}
	switch contradicts := slices.IndexFunc(t.Warnings,
		func(w router.Warning) bool { return w.Code == trace.CountsContradict }); {
	case contradicts >= 0:
		return nil, doubted(t.Warnings[contradicts]), nil
	case t.Doubt().Code != "":
		return nil, doubted(t.Doubt()), nil
	case len(t.Ranks) < 2 || len(layers) == 0:
		return nil, noTime("no_layer"), nil
	}
	own := SlotsPerStep(r)
	c = &Cost{Basis: "trace", Source: t.Exports[0].Path, Ranks: len(t.Ranks), Of: times.Of, TopK: topK,
		StepNS: t.Bound.StepNS, LateHosts: t.Waiting.MostlyHosts(), slots: cmp.Or(perStep, own)}
	if c.StepNS.Defined() {
		c.StepBasis = "profiled"
	}
	obs, err := observed(layers, r, c.slots/own)
	if err != nil {
		return nil, reason, err
	}
	h, reason := c.fitTo(obs)
	if reason.Code != "" {
		return nil, reason, nil
	}
	c.HeldOut = []HeldOut{h}
	c.FixedNS, c.SlotNS, c.ExpertNS, c.Slots = router.Number(c.fit[0]), router.Undefined(), router.Number(c.fit[2]),
		router.Undefined()
	if perStep > 0 || !r.Window {
		c.SlotNS, c.Slots = router.Number(c.fit[1]), router.Number(c.slots)
	}
	return c, reason, nil
}

// fitTo fits all observations, and says how far fits without one layer are off on it. The
// reason is empty unless there is no fit.
func (c *Cost) fitTo(obs []observation) (h HeldOut, reason router.Warning) {
	layers := map[int]bool{}
	for _, o := range obs {
		layers[o.layer] = true
	}
	h = HeldOut{Groups: len(layers), N: len(obs)}
	if len(layers) < leastLayers {
		return h, noTime("few", "groups", len(layers), "group", "layer", "least", leastLayers)
	}
	var ok bool
	if c.fit, ok = fit(obs); !ok {
		return h, noTime("negative")
	}
	var off, changes []float64
	for _, layer := range slices.Sorted(maps.Keys(layers)) {
		without, ok := fit(slices.DeleteFunc(slices.Clone(obs), func(o observation) bool { return o.layer == layer }))
		if !ok {
			return h, noTime("negative")
		}
		own := slices.DeleteFunc(slices.Clone(obs), func(o observation) bool { return o.layer != layer })
		for _, o := range own {
			off = append(off, math.Abs(o.at(without)/o.ns-1))
			for _, less := range own {
				if less.slots < o.slots {
					changes = append(changes, math.Abs(less.ns/o.ns-less.at(without)/o.at(without)))
				}
			}
		}
	}
	h.Median, h.P90 = quantile(off, 0.5), quantile(off, 0.9)
	if h.Change = h.P90; len(changes) > 0 { // else only one rank has work in each layer
		h.Change = quantile(changes, 0.95)
	}
	return h, reason
}

func quantile(values []float64, p float64) router.Number {
	slices.Sort(values)
	return router.Number(stat.Quantile(p, stat.Empirical, values, nil))
}

// fit takes the best of the least-squares fits of each set of parameters whose results
// are not negative: with three parameters that is non-negative least squares.
func fit(obs []observation) (best [3]float64, ok bool) {
	least := math.Inf(1)
	for _, columns := range [][]int{{0}, {1}, {0, 1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}} {
		if len(obs) < len(columns) {
			continue
		}
		a, b := mat.NewDense(len(obs), len(columns), nil), mat.NewVecDense(len(obs), nil)
		for i, o := range obs {
			for k, j := range columns {
				a.Set(i, k, [3]float64{1, o.slots, o.active}[j]/o.ns)
			}
			b.SetVec(i, 1)
		}
		var x, r mat.VecDense
		if x.SolveVec(a, b) != nil || mat.Min(&x) < 0 {
			continue
		}
		r.MulVec(a, &x)
		r.SubVec(&r, b)
		if left := mat.Norm(&r, 2); left < least*(1-1e-9) {
			least, ok, best = left, true, [3]float64{}
			for k, j := range columns {
				best[j] = x.AtVec(k)
			}
		}
	}
	return best, ok
}

// noTime is why there is no cost.
func noTime(why string, args ...any) router.Warning {
	return router.Warn("no_time", "", append(args, "why", why)...)
}

// doubted is that there is no cost because of a trace's own warning, with its values.
func doubted(by router.Warning) router.Warning {
	w := noTime("trace", "doubt", by.Key())
	for name, value := range by.Args {
		if name != "why" {
			w.Args[name] = value
		}
	}
	return w
}

// SlotsPerStep is the mean slots of a layer in one recorded step.
func SlotsPerStep(r *counts.Record) float64 {
	return float64(r.Slots()) / float64(max(1, len(r.Iterations())*len(r.Layers())))
}

// observed joins the mean time of each rank in each layer with its mean work.
func observed(layers map[int]*imbalance.Layer, r *counts.Record, scale float64) (obs []observation, err error) {
	steps := float64(len(r.Iterations()))
	for number, load := range r.ByLayer() {
		l := layers[number]
		if l == nil || load.Total() == 0 {
			continue
		}
		where := r.Placement
		if where == nil {
			if where, err = counts.Contiguous(len(load.PerExpert), len(l.Ranks)); err != nil {
				return nil, err
			}
		}
		layout, err := where.Layout(number)
		if err != nil {
			return nil, err
		}
		slots, active := placement.Work(layout, load.PerExpert, scale/steps, steps > 1 || r.Window && scale != 1)
		for i, rank := range l.Ranks {
			ns := 0.0
			for _, step := range l.Experts {
				ns += step[i] / float64(len(l.Experts))
			}
			if rank < len(slots) && ns > 0 {
				obs = append(obs, observation{number, rank, slots[rank], active[rank], ns})
			}
		}
	}
	// the last digits depend on it
	slices.SortStableFunc(obs, func(a, b observation) int { return cmp.Compare(a.layer, b.layer) })
	return obs, nil
}

// WithCampaign takes the step time of the learned router from unprofiled launches, with so many
// tokens in one step of all ranks, for the time under the profiler. The reason says why not.
func (c *Cost) WithCampaign(r gain.Result, tokens float64) (reason router.Warning) {
	if r.Verdict.Refused() {
		return router.Warn("campaign_step_time", "", "why", "refused", "verdict", r.Verdict)
	}
	steps, reason := r.StepsNS(gain.Normal, tokens)
	if reason.Code == "" {
		c.StepNS, c.StepBasis, c.Measured = router.Number(stat.Mean(steps, nil)), "campaign", &r.Gain
	}
	return reason
}

// slowest is the predicted time of the slowest rank.
func (c *Cost) slowest(l router.Layout, load []int64, scale float64, expected bool) (ns float64) {
	slots, active := placement.Work(l, load, scale, expected)
	for rank := range slots {
		ns = max(ns, observation{slots: slots[rank], active: active[rank]}.at(c.fit))
	}
	return ns
}

// TimeChange is the predicted change of time from the baseline to a placement: the
// time of the slowest rank, added over layers, after less before, over Of. Low and High
// are the least and the largest over the judged windows, widened by Error: they do not hold
// what the cost leaves out.
type TimeChange struct {
	Estimate router.Number `json:"estimate"` // mean over windows
	Low      router.Number `json:"low"`
	High     router.Number `json:"high"`
	Of       string        `json:"of"`       // "step time", or "expert time" where the step's is not known
	Basis    string        `json:"basis"`    // always "inferred"
	Windows  int           `json:"windows"`  // that the interval is over
	Error    router.Number `json:"error"`    // that 95 % of held-out changes err by, of the time before, over Of
	SavedNS  router.Number `json:"saved_ns"` // per step, mean over windows
	AtMost   bool          `json:"at_most"`  // ranks wait mostly for late hosts: Cost.LateHosts
}

// change compares the scores of windows by the baseline with those by the default, nil without
// a cost or a window with load.
func (c *Cost) change(windows []seen) *TimeChange {
	windows = slices.DeleteFunc(slices.Clone(windows), func(w seen) bool { return !w.scores[1].ns.Defined() })
	if c == nil || len(windows) == 0 {
		return nil
	}
	n := router.Number(len(windows))
	t := &TimeChange{Low: router.Number(math.Inf(1)), High: router.Number(math.Inf(-1)), Of: "step time",
		Basis: "inferred", Windows: len(windows), AtMost: c.LateHosts}
	all := router.Number(0) // that could be saved
	for _, w := range windows {
		was, of := w.scores[0].ns, c.StepNS
		saved := was - w.scores[1].ns
		if !of.Defined() {
			t.Of, of = "expert time", was
		}
		t.Estimate, t.SavedNS, t.Error = t.Estimate-saved/of/n, t.SavedNS+saved/n, t.Error+c.HeldOut[0].Change*was/of/n
		t.Low, t.High, all = min(t.Low, -saved/of), max(t.High, -saved/of), max(all, was/of)
	}
	t.Low, t.High = max(t.Low-t.Error, -all), t.High+t.Error
	return t
}
