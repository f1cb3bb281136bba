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
	for _, m := range list {
		m.peaks = m.findPeaks(len(ranks[0].layers))
		if m.weight == int(Transfer) && 2*m.between(len(ranks[0].layers)) > len(ranks[0].layers) { // layers exchange tokens by it
			m.weight = int(Perhaps)
		}
	}
	return list
}

// between is in how many of the segments between n layers the kernel was launched.
func (m *mark) between(n int) (segments int) {
	for _, t := range m.counts {
		if 0 < t.segment && t.segment < n {
			segments++
		}
	}
	return segments
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

// progression is the period in which all of the places lie, from the beginning to the end
// of segments of which the last has a number.
func progression(places []int, last int) (period, bool) {
	if len(places) < 2 {
		return period{}, false
	}
	d := places[1] - places[0]
	for i := range places[1:] {
		if places[i+1]-places[i] != d {
			return period{}, false
		}
	}
	return period{d, places[0] % max(d, 1)}, d > 1 && places[0] <= d && places[len(places)-1]+d >= last
}

// twoSteps is the period of n layers that begin as a step does and have one more
// beginning among them.
func (m *mark) twoSteps(n int) (period, bool) {
	if len(m.peaks) != 1 || m.in(0) <= m.in(1) {
		return period{}, false
	}
	return period{m.peaks[0], 0}, 2*m.peaks[0] >= n && m.peaks[0] > 1
}

// votes are the periods that marks of enough weight show, each with the weight.
func votes(marks []*mark, n int) map[period]int {
	votes := map[period]int{}
	for _, m := range marks {
		if p, ok := progression(m.peaks, n-1); ok {
			votes[p] += m.weight
		}
	}
	strong := func(p period, weight int) bool { return weight <= enough }
	if maps.DeleteFunc(votes, strong); len(votes) > 0 {
		return votes
	}
	for _, m := range marks {
		if p, ok := progression(m.peaks, n-1); ok {
			votes[p] += m.weight
		} else if p, ok := m.twoSteps(n); ok {
			votes[p] += m.weight
		}
	}
	if maps.DeleteFunc(votes, strong); len(votes) > 0 {
		return votes
	}
	if p, ok := together(marks, n); ok {
		votes[p] = 1
	}
	return votes
}

const (
	longRecording = 20   // beginnings of steps among which there may be exceptions
	mostIrregular = 0.05 // their share
)

// together is the period in which the peaks of all marks lie, where kinds of steps share
// none of them.
func together(marks []*mark, n int) (period, bool) {
	weight := map[int]int{}
	for _, m := range marks {
		for _, p := range m.peaks {
			weight[p] += m.weight
		}
	}
	maps.DeleteFunc(weight, func(_, w int) bool { return w <= enough })
	places := slices.Sorted(maps.Keys(weight))
	if p, ok := progression(places, n-1); len(places) > 2 && ok {
		return p, true
	}
	if len(places) <= longRecording {
		return period{}, false
	}
	distances, offsets := map[int]int{}, map[int]int{}
	for i := range places[1:] {
		distances[places[i+1]-places[i]]++
	}
	d, _ := most(distances)
	for _, p := range places {
		offsets[p%d]++
	}
	first, hits := most(offsets)
	least := (1 - mostIrregular) * float64(max(len(places), n/d))
	return period{d, first}, d > 1 && float64(hits) >= least
}

// most is the key of the largest value, the smallest of equal ones.
func most(counts map[int]int) (key, n int) {
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		if counts[k] > n {
			key, n = k, counts[k]
		}
	}
	return key, n
}

// period is the one that the marks show, or why none is known.
func (r *recording) period(marks []*mark) (best period, unknown string) {
	n := len(r.layers)
	votes := votes(marks, n)
	if len(votes) == 0 {
		return best, nothingOnce
	}
	strongest := map[int]period{} // by distance
	for p, w := range votes {
		o, known := strongest[p.layers]
		if !known || w > votes[o] || w == votes[o] && p.first > o.first {
			strongest[p.layers] = p
		}
	}
	distances := slices.Sorted(maps.Keys(strongest))
	best = strongest[distances[0]]
	for _, d := range distances[1:] {
		if o := strongest[d]; d%best.layers != 0 || o.first%best.layers != best.first || !r.kinds(best, o) {
			best = o
		}
	}
	all, ok := together(marks, n) // steps of one kind may be at a regular distance, and those of others between
	if ok && best.layers%all.layers == 0 && best.layers > all.layers && r.kinds(all, best) {
		return all, ""
	}
	return best, doubt(marks, votes, best)
}

// doubt says what speaks against the period that marks show, if anything does.
func doubt(marks []*mark, votes map[period]int, best period) string {
	weight := votes[best]
	divides := func(p period) bool { return p.layers >= best.layers || best.layers%p.layers == 0 }
	switch {
	case slices.ContainsFunc(slices.Collect(maps.Keys(votes)), func(p period) bool { return !divides(p) }):
		return severalPeriods
	case weight > 1 && leftOver(marks, best) >= weight:
		return marksElsewhere
	}
	return ""
}

// leftOver is the weight of the marks that have a peak within steps. Kinds of steps may
// begin with different marks.
func leftOver(marks []*mark, p period) (weight int) {
	within := func(segment int) bool { return p.at(segment) > 0 }
	for _, m := range marks {
		if slices.ContainsFunc(m.peaks, within) {
			weight += m.weight
		}
	}
	return weight
}

// stage is which one of a pipeline ran, by the transfers between steps and what models run
// once a step around them: the first sends and looks tokens up, the last samples and receives.
func (r *recording) stage(p period) string {
	between, before, after := 0, false, false
	for i := 1; i < len(r.layers); i++ {
		transfers := 0
		for _, l := range r.segment(i) {
			switch {
			case l.Mark == Transfer && p.at(i) > 0: // layers exchange tokens by it
				return ""
			case l.Mark == Transfer:
				transfers++
			case l.Mark == Sure && p.at(i) == 0:
				before, after = before || transfers == 0, after || transfers > 0
			}
		}
		between = max(between, transfers)
	}
	switch {
	case between > 1:
		return "middle"
	case between == 1 && after && !before:
		return "first"
	case between == 1 && before && !after:
		return "last"
	}
	return ""
}
