package trace

import (
	"cmp"
	"slices"
	"sync"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/trace/wait"
	"github.com/moebalance/moebalance/router"
)

// reduction turns export summaries into a Trace.
type reduction struct {
	exports     []*exportSummary
	options     Options
	trace       *Trace
	ranks       []*rankEvents // in rank order
	times       *imbalance.Times
	names       *capture.Index[string]
	nameOf      map[*exportSummary][]int32 // its names among all
	classes     []kernel.Class             // of names
	expertTimes []expertTime               // see sumExperts
	partial     bool                       // only some steps are left of what was recorded
	staged      bool                       // ranks are of the first and of the last stage of a pipeline
	met         bool                       // their collectives show that ranks ran the same steps
	// whether the layer counts as one: all that are named, or time without any
	judged func(layer router.OptInt) bool
}

// reduce computes the result of export summaries taken together. Their order does
// not matter.
func reduce(exports []*exportSummary, options Options) (*Trace, error) {
	r, err := newReduction(exports, options)
	if err != nil {
		return nil, err
	}
	r.infer()
	r.arm()
	r.structure()
	if err := cmp.Or(r.selectArm(), r.selectSteps()); err != nil {
		return nil, err
	}
	r.differentRuns()
	r.tabulate()
	var wait sync.WaitGroup
	wait.Go(r.kernels)
	r.cells()
	wait.Wait()
	r.warnMissingRanges()
	r.unknownTime()
	r.experts()
	if err := r.checkRecorded(); err != nil {
		return nil, err
	}
	r.loadExperts()
	r.sortExperts()
	r.graphs()
	r.sumExperts()
	r.imbalance()
	r.speeds()
	r.attention()
	r.checkLoadFits()
	r.replays()
	r.checkMeetings()
	r.evenRanks()
	r.waits()
	r.coverage()
	r.warnUnevenRanks()
	if r.trace.Undecided().Code != "" {
		r.trace.Bound.Gain = router.Undefined()
	}
	return r.trace, nil
}

// newReduction puts exports and ranks in order. It fails when two of them cannot
// be ranks of one run.
func newReduction(exports []*exportSummary, options Options) (*reduction, error) {
	r := &reduction{exports: slices.Clone(exports), options: options, trace: newTrace(),
		names: capture.NewIndex[string]()}
	slices.SortStableFunc(r.exports, func(a, b *exportSummary) int {
		return cmp.Or(slices.Compare(a.Export.Ranks, b.Export.Ranks), cmp.Compare(a.Export.Path, b.Export.Path))
	})
	for _, d := range r.exports {
		for _, l := range d.ranks {
			l.of = d
			r.ranks = append(r.ranks, l)
		}
		r.trace.Exports = append(r.trace.Exports, d.Export)
		if d.World > 0 {
			r.trace.World = max(r.trace.World, router.OptInt(d.World))
		}
	}
	slices.SortStableFunc(r.ranks, func(a, b *rankEvents) int { return cmp.Compare(a.Rank.Rank, b.Rank.Rank) })
	r.numberNames()
	if err := cmp.Or(r.oneArm(), r.checkRanks(), r.oneModel(), r.oneTime()); err != nil {
		return nil, err
	}
	for _, p := range r.ranks {
		r.trace.Ranks = append(r.trace.Ranks, p.Rank)
	}
	return r, nil
}

func newTrace() *Trace {
	return &Trace{
		SchemaVersion: SchemaVersion, Kind: "trace", World: NoID,
		Ranks: []Rank{}, Exports: []Export{}, Kernels: []KernelStat{}, Phases: []PhaseStat{}, Cells: []Cell{},
		Experts: []ExpertStat{}, Graphs: []GraphStat{}, Imbalance: []imbalance.Row{}, Overall: []imbalance.Summary{},
		StepTimes: []StepTime{}, StepKinds: []StepKind{}, Replays: []Replay{},
		Idle: []wait.Idle{}, Speeds: []Speed{},
		Warnings: []router.Warning{},
	}
}

func (r *reduction) warn(code, subject string, args ...any) {
	r.trace.Warnings = append(r.trace.Warnings, router.Warn(code, subject, args...))
}

// numberNames gives the names of all exports common numbers.
func (r *reduction) numberNames() {
	r.nameOf = map[*exportSummary][]int32{}
	for _, d := range r.exports {
		to := make([]int32, len(d.Names))
		for i, name := range d.Names {
			if to[i] = r.names.Number(name); int(to[i]) == len(r.classes) {
				r.classes = append(r.classes, d.classes[i])
			}
		}
		r.nameOf[d] = to
	}
}

// kernels groups by name over all ranks, the most time first.
func (r *reduction) kernels() {
	lists, tables := make([][]kernelEvent, len(r.ranks)), make([][]int32, len(r.ranks))
	for i, p := range r.ranks {
		lists[i], tables[i] = p.events, r.nameOf[p.of]
	}
	g := groupDurations(lists, len(r.names.Values),
		func(list int, e *kernelEvent) int32 { return tables[list][e.name] })
	for i, name := range r.names.Values {
		if s := g.stats(i); s.Instances > 0 {
			r.trace.Kernels = append(r.trace.Kernels, KernelStat{Name: name, Phase: r.classes[i].Phase,
				Library: r.classes[i].Library, Stats: s})
		}
	}
	slices.SortFunc(r.trace.Kernels, func(a, b KernelStat) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(b.Instances, a.Instances),
			cmp.Compare(a.Name, b.Name))
	})
}

// cells fills Cells and Phases, the ranks side by side.
func (r *reduction) cells() {
	cells := make([][]Cell, len(r.ranks))
	var wait sync.WaitGroup
	for i, p := range r.ranks {
		wait.Go(func() { cells[i] = p.cells() })
	}
	wait.Wait()
	r.trace.Cells = append(r.trace.Cells, slices.Concat(cells...)...)
	r.kinds()
	at := map[PhaseStat]int{}
	for i := range r.trace.Cells {
		c := &r.trace.Cells[i]
		key := PhaseStat{Rank: c.Rank, Layer: c.Layer, Phase: c.Phase}
		n, known := at[key]
		if !known {
			n = len(r.trace.Phases)
			at[key], r.trace.Phases = n, append(r.trace.Phases, key)
		}
		s := &r.trace.Phases[n]
		s.Instances, s.TotalNS = s.Instances+c.Instances, s.TotalNS+c.TotalNS
		s.CollectiveNS, s.BusyNS = s.CollectiveNS+c.CollectiveNS, s.BusyNS+c.BusyNS
	}
	slices.SortFunc(r.trace.Phases, func(a, b PhaseStat) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Layer, b.Layer), kernel.ComparePhases(a.Phase, b.Phase))
	})
}

// cells sums one rank by step, layer and phase.
func (p *rankEvents) cells() []Cell {
	of, places := groupLocations(p.of.Places,
		func(l location) location { return location{Step: l.Step, Layer: l.Layer, Expert: NoID, Phase: l.Phase} })
	cells, busy := make([]Cell, len(places)), make([]kernel.Busy, len(places))
	for g := range p.groups() {
		c := &cells[of[g.location]]
		c.Instances += g.kernels
		c.TotalNS += g.ns
		if g.class.Collective {
			c.CollectiveNS += g.ns
		}
		if g.class.GEMM && g.at.Phase == PhaseExperts {
			c.GEMMs += g.kernels
			c.GEMMNS += g.ns
		}
	}
	for i := range p.events {
		e := &p.events[i]
		busy[of[e.location]].Add(e.start, e.duration)
	}
	for i, at := range places {
		c := &cells[i]
		c.Rank, c.Step, c.Layer, c.Phase, c.BusyNS, c.Kind = p.Rank.Rank, router.OptInt(at.Step), router.OptInt(at.Layer),
			at.Phase, busy[i].NS, NoID
	}
	// locations of other ranks in the same export have no kernels here
	cells = slices.DeleteFunc(cells, func(c Cell) bool { return c.Instances == 0 })
	slices.SortFunc(cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Layer, b.Layer),
			kernel.ComparePhases(a.Phase, b.Phase))
	})
	return cells
}

// groupLocations numbers the locations that fall together under a key.
func groupLocations(locations []location, key func(location) location) (groupOf []int32, groups []location) {
	x := capture.NewIndex[location]()
	groupOf = make([]int32, len(locations))
	for i, l := range locations {
		groupOf[i] = x.Number(key(l))
	}
	return groupOf, x.Values
}

// experts lists what ranges of their own show of single experts.
func (r *reduction) experts() {
	found := make([][]ExpertStat, len(r.ranks))
	var wait sync.WaitGroup
	for i, p := range r.ranks {
		wait.Go(func() { found[i] = p.experts() })
	}
	wait.Wait()
	r.trace.Experts = append(r.trace.Experts, slices.Concat(found...)...)
}

// sortExperts puts the experts in the order of layers, experts and ranks.
func (r *reduction) sortExperts() {
	slices.SortFunc(r.trace.Experts, func(a, b ExpertStat) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Expert, b.Expert), cmp.Compare(a.Rank, b.Rank))
	})
}

// graphs fills Graphs.
func (r *reduction) graphs() {
	at := map[[2]int64]int{} // by rank and graph
	for _, p := range r.ranks {
		for _, g := range p.Graphs {
			key := [2]int64{int64(p.Rank.Rank), g.Graph}
			if _, known := at[key]; !known {
				at[key] = len(r.trace.Graphs)
				r.trace.Graphs = append(r.trace.Graphs, GraphStat{Rank: p.Rank.Rank, Graph: g.Graph})
			}
			s := &r.trace.Graphs[at[key]]
			s.Instances, s.TotalNS = s.Instances+1, s.TotalNS+g.NS
		}
	}
}

// experts are the experts of one rank that own kernels.
func (p *rankEvents) experts() (list []ExpertStat) {
	of, experts := groupLocations(p.of.Places, expertOf)
	durations := p.durationsBy(len(experts), of)
	for i, at := range experts {
		if s := durations.stats(i); s.Instances > 0 && at.Expert != NoID {
			list = append(list, ExpertStat{Rank: p.Rank.Rank, Layer: router.OptInt(at.Layer), Expert: int(at.Expert),
				Basis: imbalance.Observed, Slots: NoID, Stats: s})
		}
	}
	return list
}

// warnUnevenRanks warns of ranks that are missing, and of ranks with far fewer
// kernels than the others: they ended early, lost data, or are not of this run.
func (r *reduction) warnUnevenRanks() {
	if world := int(r.trace.World); world > len(r.ranks) {
		r.warn(missingRanks, "", "given", len(r.ranks), "world", world)
	}
	if len(r.ranks) < 2 {
		return
	}
	counts, perLayer := make([]int64, len(r.ranks)), make([]int64, len(r.ranks))
	for i, p := range r.ranks {
		counts[i] = int64(len(p.events) + len(p.Graphs))
		perLayer[i] = p.kernelsPerLayer()
	}
	median := func(list []int64) float64 { return float64(kernel.StatsOf(slices.Clone(list)).MedianNS) }
	all, layered := median(counts), median(perLayer)
	for i, p := range r.ranks {
		switch {
		case float64(counts[i]) < all/2:
			r.warn("few_kernels", p.Rank.Export, "why", "all", "rank", p.Rank.Rank, "kernels", counts[i], "median", all)
		case float64(perLayer[i]) < leastKernels*layered:
			r.warn("few_kernels", p.Rank.Export, "why", "layer", "rank", p.Rank.Rank, "kernels", perLayer[i], "median",
				layered)
		}
	}
}

// leastKernels is the share of the median rank's kernels per layer that a rank runs at
// least: ranks run the same layers, and only kernels per expert differ with the load,
// by 4 % in the captures of testdata.
const leastKernels = 0.9

// kernelsPerLayer are the rank's kernels, in steps where these are inferred, over the number
// of its layers, so that the stages of a pipeline can be compared. Dense GEMMs
// do not count: a second stream on one GPU may run any number of them beside the model's.
func (p *rankEvents) kernelsPerLayer() int64 {
	layers, kernels, dense := map[int32]bool{}, int64(0), p.of.dense()
	for g := range p.groups() {
		if p.Structure != nil && p.Structure.Layers > 0 && g.at.Step == NoID {
			continue
		}
		if !dense[g.name] {
			kernels += g.kernels
		}
		layers[g.at.Layer] = true
	}
	delete(layers, NoID)
	return kernels / int64(max(len(layers), 1))
}

// coverage sums what the attribution reached.
func (r *reduction) coverage() {
	var total, launched, layered, expert int64
	for _, p := range r.ranks {
		launched += p.LaunchedNS
	}
	for g := range r.groups() {
		total += g.ns
		if g.at.Layer != NoID {
			layered += g.ns
		}
		if g.at.Expert != NoID {
			expert += g.ns
		}
	}
	share := func(part int64) router.Number { return router.Number(part) / router.Number(total) } // 0/0 is undefined
	r.trace.Coverage = Coverage{GPUNS: total, LaunchShare: share(launched), LayerShare: share(layered),
		ExpertShare: share(expert)}
	if r.partial { // launches are counted over whole captures
		r.trace.Coverage.LaunchShare = router.Undefined()
	}
}
