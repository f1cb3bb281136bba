package trace

import (
	"iter"
	"sync"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
)

// row is what the kernels of one name at one location of a rank add up to.
type row struct {
	location, name int32
	kernels, ns    int64
}

// group is a row with what its numbers stand for.
type group struct {
	*row
	rank  *rankEvents
	at    *location
	class *kernel.Class
}

// groups are the rows of all ranks. Every sum over kernels that asks neither when they ran nor how
// their durations are spread is a fold over them: a step of a layer, for example, is the groups
// whose locations have its number.
func (r *reduction) groups() iter.Seq[group] {
	return func(yield func(group) bool) {
		for _, p := range r.ranks {
			for g := range p.groups() {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// groups are the rows of one rank.
func (p *rankEvents) groups() iter.Seq[group] {
	return func(yield func(group) bool) {
		rows := p.table()
		for i := range rows {
			w := &rows[i]
			if !yield(group{w, p, &p.of.Places[w.location], &p.of.classes[w.name]}) {
				return
			}
		}
	}
}

// table is the events of a rank grouped by location and name, in the order of locations.
func (p *rankEvents) table() []row {
	if p.rows != nil {
		return p.rows
	}
	ends := make([]int32, len(p.of.Places)+1)
	for i := range p.events {
		ends[p.events[i].location+1]++
	}
	for i := range p.of.Places {
		ends[i+1] += ends[i]
	}
	order := make([]int32, len(p.events))
	for i := range p.events {
		at := &ends[p.events[i].location]
		order[*at] = int32(i)
		*at++
	}
	last := make([]int32, len(p.of.Names)) // the latest row of each name, plus 1
	p.rows = []row{}
	for _, i := range order {
		e := &p.events[i]
		at := last[e.name] - 1
		if at < 0 || p.rows[at].location != e.location {
			at = int32(len(p.rows))
			p.rows = append(p.rows, row{location: e.location, name: e.name})
			last[e.name] = at + 1
		}
		p.rows[at].kernels++
		p.rows[at].ns += e.duration
	}
	return p.rows
}

// tabulate groups the events of all ranks, side by side.
func (r *reduction) tabulate() {
	var wait sync.WaitGroup
	for _, p := range r.ranks {
		wait.Go(func() { p.table() })
	}
	wait.Wait()
}

// durationsBy sorts the durations of a rank's events into n groups by their location; a negative
// number leaves a location out.
func (p *rankEvents) durationsBy(n int, of []int32) *durationGroups {
	return groupDurations([][]kernelEvent{p.events}, n, func(_ int, e *kernelEvent) int32 { return of[e.location] })
}

// expertOf is the layer and expert of a location, ranges.Unattributed outside every expert.
func expertOf(l location) location {
	if l.Expert == NoID {
		return ranges.Unattributed
	}
	return location{Step: NoID, Layer: l.Layer, Expert: l.Expert}
}
