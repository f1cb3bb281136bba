package trace

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Recorded is what expert statistics say about the same run, by layer. Traces hold no
// counts: without them no time is allocated and no load is judged.
type Recorded struct {
	Layers    map[int]Counted
	Imbalance []imbalance.Row  // of the load, at both levels
	Warnings  []router.Warning // of whoever read it, passed on
	// StepTokens is the tokens of all ranks in a step, mean over the counted steps; 0 where not known. It is AtMost
	// these where passes are added up, or experts per token are not recorded.
	StepTokens float64
	AtMost     bool
	// OnRanks is the same on the ranks of a run, 0 where unknown, some of which are in
	// the trace; nil where the counts record their ranks.
	OnRanks func(run, traced int) (Recorded, error)
}

// Counted are the slots per expert of a layer, and which ranks hold its experts: none where that is not known.
type Counted struct {
	router.Load
	Layout router.Layout
}

// ErrCounts is the error of recorded counts that cannot be of the captured run.
var ErrCounts = errors.New("the recorded counts do not match the trace")

// recorded takes the counts on the ranks of the trace. Inferred layers, which have no other numbers, are renumbered
// like as many counted layers: of a model whose first three layers are dense, inferred layer 0 becomes counted layer 3.
func (r *reduction) recorded() (err error) {
	given := &r.options.Recorded
	if given.OnRanks != nil {
		if *given, err = given.OnRanks(int(max(0, r.trace.World)), len(r.ranks)); err != nil {
			return err
		}
	}
	r.trace.Warnings = append(r.trace.Warnings, given.Warnings...)
	s, counted := r.trace.Structure, given.loaded()
	if s == nil || s.Beside || s.Layers == 0 || len(counted) != int(s.Layers) ||
		counted[len(counted)-1] == len(counted)-1 {
		return nil
	}
	r.relocate(func(l *location) {
		if l.Layer != NoID && l.Inferred&ranges.InferredLayer > 0 {
			l.Layer = int32(counted[l.Layer])
		}
	})
	r.warn("counts_order", "first", counted[0], "last", counted[len(counted)-1], "most", len(counted)-1)
	return nil
}

// loaded are the layers with any load, ascending: some recorders list the dense ones too.
func (r *Recorded) loaded() []int {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Layers)), func(l int) bool { return r.Layers[l].Total() == 0 })
}

// CountsLayers is the code of the warning that counts are of more layers than the trace.
const CountsLayers = "counts_layers"

// checkRecorded refuses, with an error that wraps ErrCounts, counts that contradict the trace:
//
//   - a rank in the trace that they do not have;
//   - a kernel of the gate that is made for another number of experts;
//   - layers numbered otherwise: none in common, or each side has some that the
//     other lacks.
//
// A trace says nothing of the model's top-k and, where one kernel serves all
// experts, nothing of its tokens. What only looks odd is a warning, because counts may be
// of more steps, and a trace of fewer ranks and layers.
func (r *reduction) checkRecorded() (err error) {
	given := &r.options.Recorded
	last, made := r.ranks[len(r.ranks)-1].Rank.Rank, r.trace.GateExperts()
	for _, layer := range slices.Sorted(maps.Keys(given.Layers)) {
		c := given.Layers[layer]
		switch experts, ranks := len(c.PerExpert), c.Layout.Ranks(); {
		case ranks > 0 && last >= ranks:
			return refuse(quantity.Count(ranks, "rank"), "the trace has rank %d", last)
		case len(made) > 0 && !slices.Contains(made, experts): // of two models, one may draft for the other
			return refuse(quantity.Count(experts, "expert"), "the top-k kernel in the trace is compiled for %s",
				quantity.Ranges(made))
		}
	}
	worked := slices.Sorted(maps.Keys(sums(r, func(g group) (int, bool) {
		return int(g.at.Layer), g.at.Phase == PhaseExperts && g.at.Layer != NoID
	})))
	counted := given.loaded()
	common := slices.DeleteFunc(slices.Clone(worked), func(l int) bool { return !slices.Contains(counted, l) })
	without, idle := len(common) < len(worked), len(common) < len(counted)
	switch {
	case len(worked) == 0 || len(counted) == 0 || !without && !idle:
	case len(common) == 0 || without && idle:
		return refuse("layers "+quantity.Ranges(counted), "experts run in layers %s; number both the same way",
			quantity.Ranges(worked))
	default:
		code := map[bool]string{true: CountsContradict, false: CountsLayers}[without]
		r.warn(code, "counted", len(counted), "layers", len(worked))
	}
	return nil
}

// refuse is the error of counts that contradict what a trace shows.
func refuse(counts, shows string, args ...any) error {
	return fmt.Errorf("%w: counts of %s, %s", ErrCounts, counts, fmt.Sprintf(shows, args...))
}

// experts fills Experts: what ranges of their own show of single experts, and else the time of grouped kernels,
// allocated by the recorded load. It refuses counts that do not have an expert on the rank on which it ran.
func (r *reduction) experts() error {
	given := r.options.Recorded.Layers
	observed := map[[2]int]bool{} // rank and layer
	for e, s := range statistics(r, func(p *rankEvents, e *event) (ExpertStat, bool) {
		at := p.place(e)
		return ExpertStat{Rank: p.Rank.Rank, Layer: router.OptInt(at.Layer), Expert: int(at.Expert),
			Basis: imbalance.Observed, Slots: NoID}, at.Expert != NoID
	}) {
		e.Stats = s
		observed[[2]int{e.Rank, int(e.Layer)}] = true
		r.trace.Experts = append(r.trace.Experts, e)
	}
	grouped := map[[2]int][]int64{} // compute time per step
	for i := range r.trace.Cells {
		c := &r.trace.Cells[i]
		if key := [2]int{c.Rank, int(c.Layer)}; c.Phase == PhaseExperts && c.Layer.Defined() && !observed[key] {
			grouped[key] = append(grouped[key], c.ComputeNS())
		}
	}
	if len(grouped) > 0 && len(given) == 0 {
		r.warn("no_expert_times")
	}
	for key, steps := range grouped {
		if c := given[key[1]]; key[0] < c.Layout.Ranks() && c.Layout.Experts() == len(c.PerExpert) {
			r.trace.Experts = append(r.trace.Experts, c.allocate(key[0], key[1], steps)...)
		}
	}
	slices.SortFunc(r.trace.Experts, func(a, b ExpertStat) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Expert, b.Expert), cmp.Compare(a.Rank, b.Rank))
	})
	for i := range r.trace.Experts {
		e := &r.trace.Experts[i]
		switch c, counted := given[int(e.Layer)]; {
		case !counted || e.Basis != imbalance.Observed:
		case e.Expert >= len(c.PerExpert),
			e.Expert < c.Layout.Experts() && !slices.Contains(c.Layout.Places(e.Expert), e.Rank):
			return refuse(quantity.Count(len(c.PerExpert), "expert"), "expert %d of layer %d ran on rank %d", e.Expert,
				e.Layer, e.Rank)
		default:
			e.Slots = router.OptInt(c.PerExpert[e.Expert])
		}
	}
	return nil
}

// allocate divides the times of a rank's steps in a layer over the experts that it holds, in proportion to their
// recorded slots; copies on one rank are one. That is a model: it says what an expert's slots cost at the rank's
// average price, not what the expert itself took. For example, 10 ns by equal slots of three experts are 3, 3 and 4:
// each part's end is rounded down, so that the parts add up. Nothing where the rank has no load.
func (c Counted) allocate(rank, layer int, steps []int64) (parts []ExpertStat) {
	slots, total, copies := map[int]int64{}, int64(0), c.Layout.CopyLoad(c.PerExpert)
	for e := range c.PerExpert {
		for _, on := range c.Layout.Places(e) {
			if on == rank {
				slots[e], total = slots[e]+copies[0], total+copies[0]
			}
			copies = copies[1:]
		}
	}
	given, upTo := make([]int64, len(steps)), int64(0) // to the experts before, by step
	for _, e := range slices.Sorted(maps.Keys(slots)) {
		upTo += slots[e]
		times := make([]int64, len(steps))
		for i, ns := range steps {
			times[i] = int64(float64(ns)*(float64(upTo)/float64(total))) - given[i]
			given[i] += times[i]
		}
		if total > 0 {
			parts = append(parts, ExpertStat{Rank: rank, Layer: router.OptInt(layer), Expert: e,
				Basis: imbalance.Allocated, Slots: router.OptInt(slots[e]), Stats: kernel.StatsOf(times)})
		}
	}
	return parts
}

// LoadWithoutTime is the code of the warning that the load is uneven in layers in which the time of experts is not,
// with the imbalance of both over ranks: load 0.5, time 0.04.
const LoadWithoutTime = "load_without_time"

// OtherSteps is the code of the warning that counts of other steps than the trace's are not used.
const OtherSteps = "counts_steps"

// mostUnlike is the largest ratio of tokens per counted step and tokens per traced step, either way.
const mostUnlike = 2

// dropOtherSteps drops counts of steps with far more or fewer tokens than the steps that count: counts of decode
// beside a trace of prefill, also where all that was counted is less than one step. Where every rank has tokens of its
// own and equally many, ranges name one rank's alone.
func (r *reduction) dropOtherSteps() {
	given, tokens, counted := r.options.Recorded, 0.0, 1
	for _, row := range given.Imbalance {
		counted = max(counted, row.Steps)
	}
	for step := range r.counted {
		n := r.batch(int32(step)).Tokens
		if n == 0 {
			return
		}
		tokens += float64(n) / float64(len(r.counted))
	}
	most := tokens
	if !r.ownTokens {
		most *= float64(max(len(r.ranks), int(r.trace.World)))
	}
	if given.StepTokens > 0 && tokens > 0 &&
		(mostUnlike*given.StepTokens < tokens || given.StepTokens > mostUnlike*most && !given.AtMost ||
			given.AtMost && given.StepTokens*float64(counted) < tokens) {
		r.options.Recorded = Recorded{}
		how := map[bool]string{true: "at most"}[given.AtMost]
		r.warn(OtherSteps, "how", how, "counted", math.Round(given.StepTokens), "traced", math.Round(tokens))
	}
}

// checkLoadFits warns of counts whose load contradicts the expert time in most of the
// layers in which either is uneven: they are of the other arm, or of another run.
func (r *reduction) checkLoadFits() {
	steps := map[int]int{}
	for _, row := range r.options.Recorded.Imbalance {
		steps[int(row.Layer)] = max(row.Steps, steps[int(row.Layer)])
	}
	uneven, layers := 0, map[string][]int{} // by code
	var loads, times []float64              // shares of the ranks in each layer
	var slowest []int                       // ranks of layers that contradict
	slow, by := r.trace.SlowGPUs()
	for _, l := range r.trace.times.Judged() {
		layer := int(l.Number)
		c := r.options.Recorded.Layers[layer]
		time, load := l.Means(), c.loadOf(l.Ranks)
		if len(l.Ranks) < 2 || floats.Sum(time) == 0 || floats.Sum(load) == 0 {
			continue
		}
		for i := range load {
			loads, times = append(loads, load[i]/floats.Sum(load)), append(times, time[i]/floats.Sum(time))
		}
		if max(excess(time), excess(load)) >= clearlyUneven {
			uneven++
		}
		slots := float64(c.Total()) / float64(len(c.PerExpert)) / float64(max(1, steps[layer]))
		code := contradicts(time, load, slots)
		for i, rank := range l.Ranks {
			if slices.Contains(slow, rank) { // load is not all that makes it slower
				time[i] /= float64(1 + by)
			}
		}
		if contradicts(time, load, slots) == "" {
			code = ""
		}
		if layers[code] = append(layers[code], layer); code == CountsContradict {
			slowest = append(slowest, l.Ranks[floats.MaxIdx(time)])
		}
	}
	time := imbalance.Summarize(r.trace.Imbalance, router.LevelRank, imbalance.Time)
	load := imbalance.Summarize(r.trace.Imbalance, router.LevelRank, imbalance.Load)
	unsure := map[bool]string{true: "run"}[!(stat.Correlation(loads, times, nil) >= surelyOfRun)]
	for _, code := range []string{CountsContradict, LoadWithoutTime} {
		if at := layers[code]; 2*len(at) > uneven {
			if slowest = slices.Compact(slowest); len(slowest) != 1 || !(load.Imbalance < clearlyUneven) {
				slowest = nil // no kernel of one rank is behind it
			}
			r.warn(code, "layer", at[0], "load", load.Imbalance, "time", time.Imbalance, "unsure", unsure, "slowest", slowest)
			return
		}
	}
}

// loadOf is the recorded load of each of the ranks, none where it is not known which experts these hold.
func (c Counted) loadOf(ranks []int) (load []float64) {
	if c.Layout.Experts() != len(c.PerExpert) || slices.Max(ranks) >= c.Layout.Ranks() {
		return nil
	}
	all := c.Layout.RankLoad(c.PerExpert)
	for _, rank := range ranks {
		load = append(load, float64(all[rank]))
	}
	return load
}

// excess is max/mean − 1.
func excess(v []float64) float64 { return slices.Max(v)*float64(len(v))/floats.Sum(v) - 1 }

// contradicts is the code of the warning that the recorded load of a layer does not fit its measured expert
// time, empty where nothing says so. Both are by rank, over the same ranks; slots is
// the mean number of slots of an expert and step.
func contradicts(time, load []float64, slots float64) string {
	switch t, l := excess(time), excess(load); {
	case max(t, l) < clearlyUneven:
	case t < min(clearlyUneven, follows*l) && slots >= computeBound:
		return LoadWithoutTime
	case l < follows*t, // even load, or other ranks'
		min(t, l) > clearlyUneven && stat.Correlation(time, load, nil) < 0:
		return CountsContradict
	}
	return ""
}

const (
	// clearlyUneven is the imbalance from which load and time must go together.
	clearlyUneven = 0.1
	// follows is the least ratio of the imbalances of time and of load. In the captures of testdata with
	// computeBound slots time has 0.29 to 0.86 of the imbalance of the load in their own counts, and at
	// most 0.06 of the imbalance in the other arm's counts; with fewer 0.08 and more.
	follows = 0.15
	// surelyOfRun is the correlation of the ranks' shares of load and time from which counts are of the traced run: of
	// kernels that hardly follow load 0.85 and 0.26, of the other arm's counts at most 0.
	surelyOfRun = 0.5
	// computeBound is the number of slots per expert and step from which the time of its GEMM
	// follows them; below, it mostly reads weights.
	computeBound = 128
)
