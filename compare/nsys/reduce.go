package nsys

import (
	"cmp"
	"slices"
	"sync"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
)

// reduction turns export summaries into a Trace.
type reduction struct {
	exports     []*exportSummary
	options     Options
	trace       *Trace
	ranks       []*rankEvents // in rank order
	sums        [][]int64     // of each rank's time, by location
	times       *imbalance.Times
	names       *capture.Index[string]
	nameOf      map[*exportSummary][]int32 // its names among all
	classes     []kernel.Class             // of names
	expertTimes []expertTime               // see sumExperts
	partial     bool                       // only some steps are left of what was recorded
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
	r.arm()
	r.structure()
	if err := cmp.Or(r.selectArm(), r.selectSteps()); err != nil {
		return nil, err
	}
	r.differentRuns()
	var wait sync.WaitGroup
	wait.Go(r.kernels)
	r.cells()
	wait.Wait()
	r.warnMissingRanges()
	r.unknownTime()
	if err := r.checkRecorded(); err != nil {
		return nil, err
	}
	r.experts()
	r.graphs()
	r.sumExperts()
	r.imbalance()
	r.checkLoadFits()
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
		names: capture.NewIndex[string](0)}
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
		Stragglers: []imbalance.Straggler{}, StepTimes: []StepTime{}, StepKinds: []StepKind{}, Idle: []wait.Idle{},
		Collectives: []wait.Collective{}, Alignment: []wait.Alignment{}, Waits: []wait.Wait{},
		Variants: []wait.Variant{}, Warnings: []router.Warning{},
	}
}

func (r *reduction) warn(code, subject string, args ...any) {
	r.trace.Warnings = append(r.trace.Warnings, router.Warn(code, subject, args...))
}

// kernels groups by name over all ranks, the most time first.
func (r *reduction) kernels() {
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

// cells fills Cells and Phases and what later questions need of every event, the
// ranks side by side.
func (r *reduction) cells() {
	cells, phases := make([][]Cell, len(r.ranks)), make([][]PhaseStat, len(r.ranks))
	r.sums = make([][]int64, len(r.ranks))
	var wait sync.WaitGroup
	for i, p := range r.ranks {
		wait.Go(func() {
			cells[i], phases[i] = p.cells(newCellGroups(p.of))
			r.sums[i] = p.sums()
		})
	}
	wait.Wait()
	r.trace.Cells = append(r.trace.Cells, slices.Concat(cells...)...)
	r.kinds()
	r.trace.Phases = append(r.trace.Phases, slices.Concat(phases...)...)
}

// cellGroups says which locations of an export make one cell, and which cells one
// phase of a layer.
type cellGroups struct {
	cellOf  []int32 // by location
	cells   []location
	phaseOf []int32 // by cell
	phases  []location
}

func newCellGroups(d *exportSummary) *cellGroups {
	var g cellGroups
	g.cellOf, g.cells = groupLocations(d.Places,
		func(l location) location { return location{Step: l.Step, Layer: l.Layer, Expert: NoID, Phase: l.Phase} })
	g.phaseOf, g.phases = groupLocations(g.cells, func(l location) location { l.Step = NoID; return l })
	return &g
}

// cells sums one rank by step, layer and phase, and by layer and phase.
func (p *rankEvents) cells(of *cellGroups) (cells []Cell, phases []PhaseStat) {
	cells, phases = make([]Cell, len(of.cells)), make([]PhaseStat, len(of.phases))
	cellBusy := make([]kernel.Busy, len(cells))
	for i := range p.events {
		e := &p.events[i]
		c := of.cellOf[e.location]
		cells[c].Instances++
		cells[c].TotalNS += e.duration
		if p.of.classes[e.name].Collective {
			cells[c].CollectiveNS += e.duration
			phases[of.phaseOf[c]].CollectiveNS += e.duration
		}
		if p.of.classes[e.name].GEMM && of.cells[c].Phase == PhaseExperts {
			cells[c].GEMMs++
			cells[c].GEMMNS += e.duration
		}
		cellBusy[c].Add(e.start, e.duration)
	}
	g := groupDurations([][]kernelEvent{p.events}, len(phases),
		func(_ int, e *kernelEvent) int32 { return of.phaseOf[of.cellOf[e.location]] })
	for i, at := range of.cells {
		c := &cells[i]
		c.Rank, c.Step, c.Layer, c.Phase, c.BusyNS, c.Kind = p.Rank.Rank, router.OptInt(at.Step), router.OptInt(at.Layer),
			at.Phase, cellBusy[i].NS, NoID
	}
	for i, at := range of.phases {
		s := &phases[i]
		s.Rank, s.Layer, s.Phase, s.Stats = p.Rank.Rank, router.OptInt(at.Layer), at.Phase, g.stats(i)
	}
	// locations of other ranks in the same export have no kernels here
	cells = slices.DeleteFunc(cells, func(c Cell) bool { return c.Instances == 0 })
	phases = slices.DeleteFunc(phases, func(s PhaseStat) bool { return s.Instances == 0 })
	slices.SortFunc(cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Layer, b.Layer),
			kernel.ComparePhases(a.Phase, b.Phase))
	})
	slices.SortFunc(phases, func(a, b PhaseStat) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), kernel.ComparePhases(a.Phase, b.Phase))
	})
	return cells, phases
}

// sums is the time at each location.
func (p *rankEvents) sums() []int64 {
	ns := make([]int64, len(p.of.Places))
	for i := range p.events {
		ns[p.events[i].location] += p.events[i].duration
	}
	return ns
}

// groupLocations numbers the locations that fall together under a key.
func groupLocations(locations []location, key func(location) location) (groupOf []int32, groups []location) {
	x := capture.NewIndex[location](0)
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
	r.loadExperts()
	slices.SortFunc(r.trace.Experts, func(a, b ExpertStat) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Expert, b.Expert), cmp.Compare(a.Rank, b.Rank))
	})
}

// graphs fills Graphs.
func (r *reduction) graphs() {
	for _, p := range r.ranks {
		runs := slices.Clone(p.Graphs)
		slices.SortFunc(runs, func(a, b graphEvent) int {
			return cmp.Or(cmp.Compare(a.Graph, b.Graph),
				cmp.Compare(a.Start, b.Start))
		})
		for len(runs) > 0 {
			n := 0
			var ns []int64
			var union kernel.Busy
			for ; n < len(runs) && runs[n].Graph == runs[0].Graph; n++ {
				ns = append(ns, runs[n].NS)
				union.Add(runs[n].Start, runs[n].NS)
			}
			s := kernel.StatsOf(ns)
			s.BusyNS = router.Number(union.NS)
			r.trace.Graphs = append(r.trace.Graphs, GraphStat{Rank: p.Rank.Rank, Graph: runs[0].Graph, Stats: s})
			runs = runs[n:]
		}
	}
}

// experts are the experts of one rank that own kernels.
func (p *rankEvents) experts() (list []ExpertStat) {
	of, experts := groupLocations(p.of.Places, func(l location) location {
		if l.Expert == NoID {
			return ranges.Unattributed
		}
		return location{Step: NoID, Layer: l.Layer, Expert: l.Expert}
	})
	g := groupDurations([][]kernelEvent{p.events}, len(experts), func(_ int, e *kernelEvent) int32 {
		if i := of[e.location]; experts[i].Expert != NoID {
			return i
		}
		return -1
	})
	for i, at := range experts {
		if s := g.stats(i); s.Instances > 0 {
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
	counts, perLayer, perExpert := make([]int64, len(r.ranks)), make([]int64, len(r.ranks)), make([]int64, len(r.ranks))
	for i, p := range r.ranks {
		counts[i] = int64(len(p.events) + len(p.Graphs))
		perLayer[i], perExpert[i] = p.kernelsPer()
	}
	median := func(list []int64) float64 { return float64(kernel.StatsOf(slices.Clone(list)).MedianNS) }
	all, layered, owned := median(counts), median(perLayer), median(perExpert)
	for i, p := range r.ranks {
		switch {
		case float64(counts[i]) < all/2:
			r.warn("few_kernels", p.Rank.Export, "why", "all", "rank", p.Rank.Rank, "kernels", counts[i], "median", all)
		case float64(perLayer[i]) < leastKernels*layered:
			r.warn("few_kernels", p.Rank.Export, "why", "layer", "rank", p.Rank.Rank, "kernels", perLayer[i], "median",
				layered)
		case float64(perExpert[i]) < leastPerExpert*owned:
			r.warn("few_kernels", p.Rank.Export, "why", "expert", "rank", p.Rank.Rank, "kernels",
				float64(perExpert[i])/1000, "median", owned/1000)
		}
	}
}

// leastKernels is the share of the median rank's kernels per layer that a rank runs at
// least: ranks run the same layers, and only kernels per expert differ with the load,
// by 4 % in the captures of testdata. Every expert runs the same kernels whatever its
// load, in those captures to the last one; libraries may split a GEMM by its size.
const (
	leastKernels   = 0.9
	leastPerExpert = 0.98
)

// kernelsPer are the rank's kernels, in steps where these are inferred, over the number
// of its layers, so that the stages of a pipeline can be compared, and a thousand times
// those in ranges of single experts over how often one ran, 0 without such ranges.
func (p *rankEvents) kernelsPer() (layer, expert int64) {
	layers, experts := map[int32]bool{}, map[location]bool{}
	seen := make([]bool, len(p.of.Places))
	kernels := int64(0)
	for i := range p.events {
		at := p.events[i].location
		l := &p.of.Places[at]
		if p.Structure != nil && p.Structure.Layers > 0 && l.Step == NoID {
			continue
		}
		kernels++
		if l.Expert != NoID {
			expert++
		}
		if !seen[at] {
			seen[at], layers[l.Layer] = true, true
			if l.Expert != NoID {
				experts[location{Step: l.Step, Layer: l.Layer, Expert: l.Expert}] = true
			}
		}
	}
	delete(layers, NoID)
	return kernels / int64(max(len(layers), 1)), 1000 * expert / int64(max(len(experts), 1))
}

// coverage sums what the attribution reached.
func (r *reduction) coverage() {
	var total, launched, layered, expert int64
	for i, p := range r.ranks {
		launched += p.LaunchedNS
		for j, ns := range r.sums[i] {
			at := &p.of.Places[j]
			total += ns
			if at.Layer != NoID {
				layered += ns
			}
			if at.Expert != NoID {
				expert += ns
			}
		}
	}
	share := func(part int64) router.Number {
		if total == 0 {
			return router.Undefined()
		}
		return router.Number(float64(part) / float64(total))
	}
	r.trace.Coverage = Coverage{GPUNS: total, LaunchShare: share(launched), LayerShare: share(layered),
		ExpertShare: share(expert)}
	if r.partial { // launches are counted over whole captures
		r.trace.Coverage.LaunchShare = router.Undefined()
	}
}
