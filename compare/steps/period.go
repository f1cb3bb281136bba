package steps

import (
	"maps"
	"slices"
)

// period is a way to cut layers into steps: before layer first and every layers
// ones after it.
type period struct{ layers, first int }

// at is the place of a layer in its step.
func (p period) at(layer int) int { return ((layer-p.first)%p.layers + p.layers) % p.layers }

// tally is how often a kernel was launched in a segment.
type tally struct{ segment, n int }

// mark is a kernel that models run once a step, and where it was launched.
type mark struct {
	weight int
	counts []tally
	peaks  []int
}

// marksOf are the marks of ranks that recorded as many layers, in order of first launch: in each segment as
// often as on the rank with most.
func marksOf(ranks []*recording) []*mark {
	numbers := map[int32]*mark{}
	var list []*mark
	own := map[int32]int{} // in a segment of a rank
	for i := range len(ranks[0].layers) + 1 {
		for _, r := range ranks {
			clear(own)
			for _, l := range r.segment(i) {
				if l.Mark == 0 {
					continue
				}
				m := numbers[l.Name]
				if m == nil {
					m = &mark{weight: int(l.Mark)}
					numbers[l.Name], list = m, append(list, m)
				}
				if n := len(m.counts); n == 0 || m.counts[n-1].segment < i {
					m.counts = append(m.counts, tally{i, 0})
				}
				own[l.Name]++
				at := &m.counts[len(m.counts)-1]
				at.n = max(at.n, own[l.Name])
			}
		}
	}
	n := len(ranks[0].layers)
	for _, m := range list {
		m.peaks = m.findPeaks(n)
		if m.weight == int(Transfer) && 2*(len(m.counts)-2) > n { // layers exchange tokens by it
			m.weight = int(Perhaps)
		}
	}
	return list
}

// in is how often the kernel was launched in a segment.
func (m *mark) in(segment int) int {
	i, found := slices.BinarySearchFunc(m.counts, segment, func(t tally, s int) int { return t.segment - s })
	if !found {
		return 0
	}
	return m.counts[i].n
}

// mostFurther are the layers behind a model's own that predict further tokens: each has an
// embedding and a head, and the last of them ends the step.
const mostFurther = 5

// findPeaks are the segments before one of n layers that have more of the kernel than the
// neighbors on both sides. Of equal neighbors in a row the last is one. Before the last
// layer there is none: a row may go on behind it.
func (m *mark) findPeaks(n int) (peaks []int) {
	for _, t := range m.counts {
		from := t.segment
		for t.segment-from < mostFurther && from > 1 && m.in(from-1) == t.n {
			from--
		}
		if t.segment > 0 && t.segment < n-1 && t.n > m.in(t.segment+1) && m.in(from-1) < t.n {
			peaks = append(peaks, t.segment)
		}
	}
	return peaks
}

// steps are the ones that marks of enough weight show, or why none are known. Their peaks lie at one distance from the
// beginning to the end, and sure ones alone at no part of it; where other segments are peaks too, as the layer that
// predicts a further token begins like a step, the peaks of the same marks count, if they outweigh marks that lie at
// several places of a step. Where they lie at several distances, the steps come with why they are unknown: a rank alone
// may lack marks of some.
func (r *recording) steps(marks []*mark) (steps []stretch, unknown string) {
	n, weight, votes, best := len(r.layers), map[int]int{}, map[period]int{}, period{}
	for _, m := range marks {
		for _, at := range m.peaks {
			weight[at] += m.weight
		}
		if p, ok := regular(m.peaks, n); ok {
			if votes[p] += m.weight; votes[p] > votes[best] || votes[p] == votes[best] && p.first > best.first {
				best = p
			}
		}
	}
	maps.DeleteFunc(weight, func(_, w int) bool { return w < int(Sure) })
	sure, often := regular(slices.Sorted(maps.Keys(weight)), n)
	maps.DeleteFunc(weight, func(_, w int) bool { return w <= enough })
	places := slices.Sorted(maps.Keys(weight))
	within := 0
	for _, m := range marks {
		if slices.ContainsFunc(m.peaks, func(at int) bool { return best.layers > 0 && best.at(at) != best.at(m.peaks[0]) }) {
			within += m.weight
		}
	}
	all, ok := regular(places, n)
	switch {
	case ok && often && sure.layers < all.layers && all.layers%sure.layers == 0 && sure.at(all.first) == 0:
		return sure.steps(n), severalPeriods // idle in turn, a rank has other marks in each step
	case ok:
		return all.steps(n), ""
	case len(places) < 2:
		return nil, nothingOnce
	case votes[best] > enough && within < votes[best]:
		return best.steps(n), ""
	}
	return unequal(marks, places, n), severalPeriods
}

// steps are the whole ones of n layers.
func (p period) steps(n int) (steps []stretch) {
	for at := p.first; at+p.layers <= n; at += p.layers {
		steps = append(steps, stretch{at, at + p.layers})
	}
	return steps
}

// unequal are steps of several lengths, as of two models in turn: between the places at which marks of enough weight
// all peak, if each length recurs. 12, 4, 12 and 4 of 32 layers are; at the ends, steps are whole if they are as long.
func unequal(marks []*mark, places []int, n int) (steps []stretch) {
	weight, seen := 0, map[int]int{}
	for _, m := range marks {
		if !slices.ContainsFunc(places, func(at int) bool { return !slices.Contains(m.peaks, at) }) {
			weight += m.weight
		}
	}
	for i, to := range places[1:] {
		seen[to-places[i]]++
	}
	longest, last := 0, places[len(places)-1]
	for length, times := range seen {
		if longest = max(longest, length); times < 2 || weight <= enough {
			return nil
		}
	}
	if max(places[0], n-last) > longest {
		return nil
	}
	from := 0
	for _, to := range append(slices.Clone(places), n) {
		if seen[to-from] > 0 {
			steps = append(steps, stretch{from, to})
		}
		from = to
	}
	return steps
}

// regular is the period in which segments between n layers lie, from the beginning to the end: 3, 5 and 7 of 9
// layers are every second one.
func regular(places []int, n int) (p period, ok bool) {
	if len(places) < 2 {
		return p, false
	}
	p = period{places[1] - places[0], places[0] % (places[1] - places[0])}
	all := (n - 2 + (p.layers-p.first)%p.layers) / p.layers // without the beginning
	apart := slices.ContainsFunc(places, func(at int) bool { return p.at(at) > 0 })
	return p, p.layers > 1 && len(places) >= all && !apart
}

// stage tells the stages of a pipeline apart by the order of transfers and of what models run once a step where a step
// begins: the first sends, then looks tokens up, the last samples, then receives. It is empty without transfers, and
// where layers exchange tokens by them.
func (r *recording) stage(steps []stretch) string {
	var order []byte
	for _, l := range r.segment(steps[1].from) {
		if l.Mark == Transfer || l.Mark == Sure {
			order = append(order, byte(l.Mark))
		}
	}
	transfer := func(l Launch) bool { return l.Mark == Transfer }
	if !slices.Contains(order, byte(Transfer)) || slices.ContainsFunc(r.segment(steps[1].from+1), transfer) {
		return ""
	}
	return string(slices.Compact(order))
}
