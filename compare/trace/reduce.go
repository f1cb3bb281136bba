package trace

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/router"
)

// reduction turns export summaries into a Trace.
type reduction struct {
	exports []*exportSummary
	options Options
	trace   *Trace
	ranks   []*rankEvents // in rank order
	counted map[int]int   // places of the steps that count
	names   *capture.Index[string]
	classes []kernel.Class // of names
	partial bool           // only some steps are left of what was recorded
	layered bool           // some time is in a layer: what is in none is then not judged
	// ownTokens is set where each rank attends to tokens of its own.
	ownTokens bool
}

// reduce computes the result of export summaries taken together. Their order does
// not matter.
func reduce(exports []*exportSummary, options Options) (*Trace, error) {
	r, err := newReduction(exports, options)
	if err != nil {
		return nil, err
	}
	r.infer()
	r.ownTokens = r.haveOwnTokens()
	r.trace.Arm, r.trace.ArmEvidence = armOf(r.exports)
	r.structure()
	if err := cmp.Or(r.selectArm(), r.recorded()); err != nil {
		return nil, err
	}
	var wait sync.WaitGroup
	for _, p := range r.ranks {
		wait.Go(p.tabulate)
	}
	wait.Wait()
	wait.Go(r.kernels)
	r.cells()
	r.dropOtherSteps()
	wait.Wait()
	r.warnMissingRanges()
	r.unknownTime()
	if err := cmp.Or(r.checkRecorded(), r.experts()); err != nil {
		return nil, err
	}
	r.imbalance()
	r.speeds()
	r.attention()
	r.checkLoadFits()
	r.replays()
	r.judgeReplay()
	r.waits()
	r.coverage()
	switch given, world := len(r.ranks), int(r.trace.World); {
	case world > given:
		r.warn(missingRanks, "given", given, "world", world)
	case r.options.World > 0 && world < given:
		r.warn(rankGroups, "why", "ep", "given", given, "world", world)
	}
	if r.trace.Undecided().Code != "" {
		r.trace.Bound.Gain = replay.NoGain()
	}
	return r.trace, nil
}

// newReduction puts exports and ranks in order. It fails when two of them cannot
// be ranks of one run.
func newReduction(exports []*exportSummary, options Options) (*reduction, error) {
	r := &reduction{exports: slices.Clone(exports), options: options, names: &capture.Index[string]{},
		trace: &Trace{SchemaVersion: SchemaVersion, Kind: "trace", World: NoID}}
	slices.SortStableFunc(r.exports, func(a, b *exportSummary) int {
		return cmp.Or(slices.Compare(a.Export.Ranks, b.Export.Ranks), cmp.Compare(a.Export.Path, b.Export.Path))
	})
	for _, d := range r.exports {
		for _, l := range d.Ranks {
			l.of = d
			r.ranks = append(r.ranks, l)
			r.trace.Hidden.Launches += l.Hidden.Launches
			r.trace.Hidden.NS += l.Hidden.NS
		}
		r.trace.Exports = append(r.trace.Exports, d.Export)
		if d.World > 0 {
			r.trace.World = max(r.trace.World, router.OptInt(d.World))
		}
		d.common = make([]int32, len(d.Names))
		for i, name := range d.Names {
			if d.common[i] = r.names.Number(name); int(d.common[i]) == len(r.classes) {
				r.classes = append(r.classes, d.Classes[i])
			}
		}
	}
	if options.World > 0 {
		r.trace.World = router.OptInt(options.World)
	}
	slices.SortStableFunc(r.ranks, func(a, b *rankEvents) int { return cmp.Compare(a.Rank.Rank, b.Rank.Rank) })
	for _, p := range r.ranks {
		r.trace.Ranks = append(r.trace.Ranks, p.Rank)
	}
	return r, r.oneRun()
}

func (r *reduction) warn(code string, args ...any) {
	r.trace.Warnings = append(r.trace.Warnings, router.Warn(code, "", args...))
}

// counts reports a step that counts.
func (r *reduction) counts(step int32) bool { _, counts := r.counted[int(step)]; return counts }

// judged reports whether time in a layer counts: in all that are named, or in none where no layer is.
func (r *reduction) judged(layer router.OptInt) bool { return layer.Defined() || !r.layered }

// kernels groups by name over all ranks, the most time first.
func (r *reduction) kernels() {
	type use struct {
		name  int32
		phase Phase
	}
	uses := sums(r, func(g group) (use, bool) { return use{g.rank.of.common[g.name], g.at.Phase}, true })
	for i, s := range statistics(r, func(p *rankEvents, e *event) (int32, bool) { return p.of.common[e.Name], true }) {
		k := KernelStat{Name: r.names.Values[i], Phase: r.classes[i].Phase, Library: r.classes[i].Library, Stats: s,
			UnknownNS: uses[use{i, PhaseUnknown}].TotalNS}
		k.Placed = slices.MaxFunc(kernel.Phases, func(a, b Phase) int {
			x, y := uses[use{i, a}], uses[use{i, b}]
			return cmp.Or(cmp.Compare(x.TotalNS, y.TotalNS), cmp.Compare(x.Instances, y.Instances))
		})
		r.trace.Kernels = append(r.trace.Kernels, k)
	}
	slices.SortFunc(r.trace.Kernels, func(a, b KernelStat) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(b.Instances, a.Instances),
			cmp.Compare(a.Name, b.Name))
	})
}

// cells fills Cells and Phases.
func (r *reduction) cells() {
	r.trace.Cells = r.cellsBy(func(g group) router.OptInt { return router.OptInt(g.at.Step) })
	r.trace.Phases = r.cellsBy(func(group) router.OptInt { return NoID })
	r.layered = slices.ContainsFunc(r.trace.Phases, func(c Cell) bool { return c.Layer.Defined() })
	r.kinds()
}

// cellsBy adds up kernels with the same rank, step, layer and phase, and puts them in order.
func (r *reduction) cellsBy(step func(group) router.OptInt) []Cell {
	type place struct{ rank, step, layer, phase int }
	by := sums(r, func(g group) (place, bool) {
		return place{g.rank.Rank.Rank, int(step(g)), int(g.at.Layer), slices.Index(kernel.Phases, g.at.Phase)}, true
	})
	cells := make([]Cell, 0, len(by))
	for _, at := range slices.SortedFunc(maps.Keys(by), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.step, b.step), cmp.Compare(a.layer, b.layer),
			cmp.Compare(a.phase, b.phase))
	}) {
		cells = append(cells, Cell{Rank: at.rank, Step: router.OptInt(at.step), Layer: router.OptInt(at.layer),
			Phase: kernel.Phases[at.phase], Sum: by[at], Kind: NoID})
	}
	return cells
}

// coverage sums what the attribution reached.
func (r *reduction) coverage() {
	var total, launched, layered, expert int64
	for _, p := range r.ranks {
		for e, at := range p.each() {
			if total += e.NS; e.Queued >= 0 {
				launched += e.NS
			}
			if at.Layer != NoID {
				layered += e.NS
			}
			if at.Expert != NoID {
				expert += e.NS
			}
		}
	}
	share := func(part int64) router.Number { return router.Number(part) / router.Number(total) } // 0/0 is undefined
	r.trace.Coverage = Coverage{GPUNS: total, LaunchShare: share(launched), LayerShare: share(layered),
		ExpertShare: share(expert)}
}
