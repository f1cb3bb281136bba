package place

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// Cost is the time of a rank's expert work in one layer and step, fitted to measured
// times by non-negative least squares of the relative error:
//
//	time = FixedNS + SlotNS · slots of the rank + ExpertNS · its active experts
//
// A parameter that the times cannot identify is 0. A fit is a model: what
// follows from it is inferred.
type Cost struct {
	Basis    string        `json:"basis"`  // "trace", "benchmark" or "cost table"
	Source   string        `json:"source"` // the first file
	Ranks    int           `json:"ranks"`  // that it is of; 0 for any
	Of       imbalance.Of  `json:"of"`     // the time that is fitted
	FixedNS  router.Number `json:"fixed_ns"`
	SlotNS   router.Number `json:"slot_ns"` // undefined where the slots of one step are not known
	ExpertNS router.Number `json:"active_expert_ns"`
	Slots    router.Number `json:"slots_per_step"`  // of one layer, all ranks; likewise
	TopK     int           `json:"top_k,omitempty"` // 0 where not known
	// The tokens of a step of all ranks that were measured; undefined where they are not known.
	LeastTokens router.Number `json:"least_measured_tokens"`
	MostTokens  router.Number `json:"most_measured_tokens"`
	StepNS      router.Number `json:"step_ns"`
	// StepBasis is "profiled", "measured" or "campaign", empty where StepNS is undefined.
	StepBasis string `json:"step_basis"`
	LateHosts bool   `json:"late_hosts"` // in the trace, see wait.MostlyHosts
	// of balanced routing, which no placement should exceed; nil without a campaign
	Measured *gain.Gain `json:"campaign"`
	HeldOut  []HeldOut  `json:"held_out"`

	slots float64       // that predictions are for, in the unit of the fit
	fits  [][3]float64  // of all observations, then without one group each
	other [3]float64    // of the other regime of a table; zeros for none
	off   router.Number // of a predicted change, in nineteen of twenty cases: HeldOut.Change
	// (measured − fitted)/√fitted time, by step and layer, then rank; nil where the work of single steps is not known
	spread [][]float64
}

// HeldOut is the error of fits on what they were not fitted to: |predicted/measured − 1|,
// where one group of observations at a time is left out.
type HeldOut struct {
	Regime string        `json:"regime"` // "steps of the trace" or benchmark, or by tokens
	Group  string        `json:"left_out"`
	Groups int           `json:"groups"`
	N      int           `json:"n"`
	Median router.Number `json:"median_error"`
	P90    router.Number `json:"p90_error"`
	// Change bounds the error of the change from one observation to another of the same group and
	// tokens that has less work, in so many cases: |change − predicted change| of the time before.
	Change router.Number `json:"change_error_p95"`
}

// covered is the share of changes that intervals are to hold.
const covered = 0.95

// observation is a measured time and the work behind it. Those of one group are left
// out together.
type observation struct {
	group, rank       int
	tokens            float64 // of the step, where they differ
	slots, active, ns float64
}

func (o observation) at(c [3]float64) float64 { return c[0] + c[1]*o.slots + c[2]*o.active }

// leastGroups is the least number of layers, or EP sizes, that leave two to fit to
// where one is left out, and still tell cost from chance.
const leastGroups = 3

// fit takes the best of the least-squares fits of each set of parameters whose results
// are not negative: with three parameters that is non-negative least squares.
func fit(obs []observation) (best [3]float64, ok bool) {
	least := math.Inf(1)
	for set := 1; set < 8; set++ {
		var columns []int
		for j := range 3 {
			if set>>j&1 == 1 {
				columns = append(columns, j)
			}
		}
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

// fitAll fits all observations, and all without one group each, and says how far the
// latter are off on the group that they lack. The reason is empty unless there is no fit.
func fitAll(obs []observation, group string) (fits [][3]float64, h HeldOut, reason router.Warning) {
	groups := map[int]bool{}
	for _, o := range obs {
		groups[o.group] = true
	}
	h = HeldOut{Group: group, Groups: len(groups), N: len(obs)}
	if len(groups) < leastGroups {
		return nil, h, noTime("few", "groups", len(groups), "group", group, "least", leastGroups)
	}
	all, ok := fit(obs)
	fits = append(fits, all)
	var off, changes []float64
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		rest := slices.DeleteFunc(slices.Clone(obs), func(o observation) bool { return o.group == g })
		c, fitted := fit(rest)
		fits, ok = append(fits, c), ok && fitted
		for _, o := range obs {
			if o.group == g {
				off = append(off, math.Abs(o.at(c)/o.ns-1))
				changes = append(changes, changeErrors(o, obs, c)...)
			}
		}
	}
	if !ok {
		return nil, h, noTime("negative")
	}
	slices.Sort(off)
	h.Median, h.P90 = router.Number(stat.Quantile(0.5, stat.Empirical, off, nil)),
		router.Number(stat.Quantile(0.9, stat.Empirical, off, nil))
	if h.Change = h.P90; len(changes) > 0 { // else only one rank has work in each group
		slices.Sort(changes)
		h.Change = router.Number(stat.Quantile(covered, stat.Empirical, changes, nil))
	}
	return fits, h, router.Warning{}
}

// noTime is why there is no cost.
func noTime(why string, args ...any) router.Warning {
	return router.Warn("no_time", "", append(args, "why", why)...)
}

// doubted is that there is no cost because of what a trace warns of, with the values of that.
func doubted(by router.Warning) router.Warning {
	w := noTime("trace", "doubt", by.Key())
	for name, value := range by.Args {
		if name != "why" {
			w.Args[name] = value
		}
	}
	return w
}

// changeErrors are those of HeldOut.Change from one observation on, by a fit that has not seen it.
func changeErrors(before observation, all []observation, c [3]float64) (errors []float64) {
	for _, after := range all {
		if after.group == before.group && after.tokens == before.tokens && after.slots < before.slots {
			errors = append(errors, math.Abs(after.ns/before.ns-after.at(c)/before.at(c)))
		}
	}
	return errors
}

// FromTrace fits the expert time of a trace to the counts of the same run, of which
// perStep are the slots of a layer in one step (0: what one recorded step has). The
// reason says why there is no cost; the error is of reading the counts.
func FromTrace(t *nsys.Trace, r *counts.Record, perStep float64, topK int) (c *Cost, reason router.Warning,
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
		func(w router.Warning) bool { return w.Code == nsys.CountsContradict }); {
	case contradicts >= 0:
		return nil, doubted(t.Warnings[contradicts]), nil
	case t.Doubt().Code != "":
		return nil, doubted(t.Doubt()), nil
	case len(t.Ranks) < 2 || len(layers) == 0:
		return nil, noTime("no_layer"), nil
	}
	c = &Cost{Basis: "trace", Source: t.Exports[0].Path, Ranks: len(t.Ranks), Of: times.Of,
		StepNS: t.OverSteps.StepNS, LateHosts: wait.MostlyHosts(t.Waits), TopK: topK}
	if c.StepNS.Defined() {
		c.StepBasis = "profiled"
	}
	return c.fitted(layers, r, perStep)
}

// FromTimes fits the time of each layer's experts on each rank, in milliseconds by step,
// to the counts of the same steps; see FromTrace. stepMS is 0 where it is not known.
func FromTimes(path string, ms [][][]float64, stepMS float64, r *counts.Record) (c *Cost, reason router.Warning,
	err error) {
	if len(ms) == 0 || len(ms[0]) == 0 || len(ms[0][0]) < 2 {
		return nil, noTime("no_layer"), nil
	}
	for _, step := range ms {
		if len(step) != len(ms[0]) ||
			slices.ContainsFunc(step, func(row []float64) bool { return len(row) != len(ms[0][0]) }) {
			return nil, noTime("unequal_steps"), nil
		}
	}
	steps := r.Iterations()
	if len(steps) != len(ms) {
		return nil, noTime("other_steps", "steps", len(ms), "counted", len(steps)), nil
	}
	c = &Cost{Basis: "benchmark", Source: path, Ranks: len(ms[0][0]), Of: imbalance.OfPhase, StepNS: router.Undefined(),
		TopK: r.TopK}
	if stepMS > 0 {
		c.StepNS, c.StepBasis = router.Number(1e6*stepMS), "measured"
	}
	if c, reason, err = c.fitted(layersOf(ms), r, 0); c == nil {
		return nil, reason, err
	}
	for i := 0; i < len(ms); i += (len(ms) + maxSpread - 1) / maxSpread {
		step, err := r.Between(steps[i], steps[i])
		if err != nil {
			return nil, reason, err
		}
		obs, err := observed(layersOf(ms[i:i+1]), step, 1)
		if err != nil {
			return nil, reason, err
		}
		c.spread = append(c.spread, c.spreadOf(obs)...)
	}
	return c, reason, nil
}

// spreadOf is Cost.spread of the observations of one step, in order of their layers; 0
// for a rank without work.
func (c *Cost) spreadOf(obs []observation) (spread [][]float64) {
	for i, o := range obs {
		if i == 0 || o.group != obs[i-1].group {
			spread = append(spread, make([]float64, c.Ranks))
		}
		if ns := o.at(c.fits[0]); ns > 0 {
			spread[len(spread)-1][o.rank] = (o.ns - ns) / math.Sqrt(ns)
		}
	}
	return spread
}

// maxSpread is the most steps that Cost.spread is of: enough for a mean over them.
const maxSpread = 32

// layersOf has times in milliseconds by step, layer and rank.
func layersOf(ms [][][]float64) map[int]*imbalance.Layer {
	layers := map[int]*imbalance.Layer{}
	for number, row := range ms[0] {
		l := &imbalance.Layer{Number: router.OptInt(number)}
		for rank := range row {
			l.Ranks = append(l.Ranks, rank)
		}
		for _, step := range ms {
			l.Experts = append(l.Experts, floats.ScaleTo(make([]float64, len(row)), 1e6, step[number]))
		}
		layers[number] = l
	}
	return layers
}

// fitted is the cost with a fit of the times of layers to the counts of the same run, or
// nil and the reason.
func (c *Cost) fitted(layers map[int]*imbalance.Layer, r *counts.Record, perStep float64) (
	_ *Cost, reason router.Warning, err error) {
	known := perStep > 0 || !r.Window
	own := SlotsPerStep(r)
	if c.slots = perStep; perStep == 0 {
		c.slots = own
	}
	obs, err := observed(layers, r, c.slots/own)
	if err != nil {
		return nil, reason, err
	}
	var h HeldOut
	if c.fits, h, reason = fitAll(obs, "layer"); reason.Code != "" {
		return nil, reason, nil
	}
	h.Regime = "steps of the " + c.Basis
	c.HeldOut, c.off = []HeldOut{h}, h.Change
	c.publish(known)
	if c.LeastTokens = router.Undefined(); known && c.TopK > 0 {
		c.LeastTokens = c.Slots / router.Number(c.TopK)
	}
	c.MostTokens = c.LeastTokens
	return c, reason, nil
}

// publish sets the fitted numbers.
func (c *Cost) publish(known bool) {
	c.FixedNS, c.SlotNS, c.ExpertNS, c.Slots = router.Number(c.fits[0][0]), router.Undefined(),
		router.Number(c.fits[0][2]), router.Undefined()
	if known {
		c.SlotNS, c.Slots = router.Number(c.fits[0][1]), router.Number(c.slots)
	}
}

// fitAt is the fit for so many tokens in a step.
func (c *Cost) fitAt(tokens float64) [3]float64 {
	if mine := c.slots/float64(c.TopK) <= decodeTokens; mine != (tokens <= decodeTokens) && c.other != [3]float64{} {
		return c.other
	}
	return c.fits[0]
}

// Beyond reports whether a step of the predictions has fewer or more tokens than were measured.
func (c *Cost) Beyond() bool {
	tokens := c.StepTokens()
	return tokens < c.LeastTokens || tokens > c.MostTokens
}

// StepTokens are those of a step of the predictions, undefined where the top-k is not known.
func (c *Cost) StepTokens() router.Number {
	if c.TopK == 0 {
		return router.Undefined()
	}
	return c.Slots / router.Number(c.TopK)
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
				obs = append(obs, observation{group: number, rank: rank, slots: slots[rank], active: active[rank], ns: ns})
			}
		}
	}
	// the last digits depend on it
	slices.SortStableFunc(obs, func(a, b observation) int { return cmp.Compare(a.group, b.group) })
	return obs, nil
}

// WithCampaign takes the step time of the learned router in unprofiled launches, of
// tokens in one step of all ranks, for that under the profiler. The reason says why not.
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

// slowest is the predicted time of the slowest rank, by fit. Ranks of equal work do not
// take equal time in every step, so that the slowest takes longer than the fit says. Where
// spread is known, it is the mean over it of the largest t + spread·√t of the fitted times
// t: the variance is taken to grow with the work. The other fits are scaled alike.
func (c *Cost) slowest(l router.Layout, load []int64, scale float64, expected bool) []float64 {
	out := make([]float64, len(c.fits))
	late := make([]float64, len(c.spread))
	slots, active := placement.Work(l, load, scale, expected)
	for rank := range slots {
		o := observation{slots: slots[rank], active: active[rank]}
		for i, f := range c.fits {
			out[i] = max(out[i], o.at(f))
		}
		ns := o.at(c.fits[0])
		for i, of := range c.spread {
			late[i] = max(late[i], ns+of[rank]*math.Sqrt(ns))
		}
	}
	if len(late) > 0 && out[0] > 0 {
		floats.Scale(stat.Mean(late, nil)/out[0], out)
	}
	return out
}
