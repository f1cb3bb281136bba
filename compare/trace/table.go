package trace

import (
	"iter"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
)

// row is the time of all kernels of one name at one place of a rank. They are busy while the GPU runs them and no
// earlier kernels of the step, layer and phase.
type row struct {
	place, name int32
	imbalance.Sum
}

// group is a row with what its place and name stand for.
type group struct {
	*row
	rank  *rankEvents
	at    *location
	class *kernel.Class
}

// sums is the one group-by: the kernels of all ranks, added up by a key that tells where they ran or
// what they are. It leaves out those without one. For example, the time of each step is
// sums(r, func(g group) (int32, bool) { return g.at.Step, true }).
func sums[K comparable](r *reduction, keyOf func(group) (key K, ok bool)) map[K]imbalance.Sum {
	by := map[K]imbalance.Sum{}
	for g := range r.groups() {
		if key, ok := keyOf(g); ok {
			sum := by[key]
			sum.Add(&g.Sum)
			by[key] = sum
		}
	}
	return by
}

// groups are the rows of all ranks.
func (r *reduction) groups() iter.Seq[group] {
	return func(yield func(group) bool) {
		for _, p := range r.ranks {
			for i := range p.rows {
				if w := &p.rows[i]; !yield(group{w, p, &p.of.Places.Values[w.place], &p.of.Classes[w.name]}) {
					return
				}
			}
		}
	}
}

// tabulate groups the events of a rank by place and name, which stay from now on.
func (p *rankEvents) tabulate() {
	var number capture.Index[int64]
	var cells capture.Index[location]
	cellOf := make([]int32, len(p.of.Places.Values))
	for i, l := range p.of.Places.Values {
		cellOf[i] = cells.Number(location{Step: l.Step, Layer: l.Layer, Phase: l.Phase})
	}
	busy, rowOf := make([]kernel.Busy, len(cells.Values)), make([]int32, len(p.events))
	for i, e := range p.events {
		rowOf[i] = number.Number(int64(e.Place)<<32 | int64(e.Name))
	}
	p.rows = make([]row, len(number.Values))
	for i := range p.events {
		e := &p.events[i]
		w, ran := &p.rows[rowOf[i]], &busy[cellOf[e.Place]]
		w.place, w.name = e.Place, e.Name
		before := ran.NS
		ran.Add(e.Start, e.NS)
		w.Instances, w.TotalNS, w.BusyNS = w.Instances+1, w.TotalNS+e.NS, w.BusyNS+ran.NS-before
		c := p.class(e)
		if c.Collective {
			w.CollectiveNS = w.TotalNS
		}
		if c.GEMM && p.place(e).Phase == PhaseExperts {
			w.GEMMs, w.GEMMNS = w.Instances, w.TotalNS
		}
	}
}

// statistics are how the durations of groups of kernels are spread, which sums do not tell. groupOf gives a kernel of a
// rank its group, and leaves it out if it has none.
func statistics[K comparable](r *reduction, groupOf func(p *rankEvents, e *event) (group K, ok bool)) map[K]Stats {
	durations := map[K][]int64{}
	for _, p := range r.ranks {
		for e := range p.each() {
			if g, ok := groupOf(p, e); ok {
				durations[g] = append(durations[g], e.NS)
			}
		}
	}
	stats := make(map[K]Stats, len(durations))
	for g, own := range durations {
		stats[g] = kernel.StatsOf(own)
	}
	return stats
}
