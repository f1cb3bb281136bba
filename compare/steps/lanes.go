package steps

import (
	"cmp"
	"math"
	"slices"
)

// SideBySide puts microbatches in order that run at the same time, each on a stream with attention and experts of its
// own: layer by layer, what comes before the experts of each, then the experts of one behind the other's. The steps are
// the ones of the first stream and of what runs on streams of neither kind; where another stream runs in one of these,
// it runs as many layers. It gives the positions of launches, and these streams in order; none where streams take
// turns, or where that does not hold.
func SideBySide(launches []Launch) (order []int, streams []uint16) {
	does := map[uint16]int{}
	for _, l := range launches {
		if l.Anchor == Attention || l.Anchor == ExpertGEMM {
			does[l.Stream] |= 1 << l.Anchor
		}
	}
	for stream, anchors := range does {
		if anchors == 1<<Attention|1<<ExpertGEMM {
			streams = append(streams, stream)
		}
	}
	if slices.Sort(streams); len(streams) < 2 {
		return nil, nil
	}
	of := make([]lane, len(streams))
	for i, l := range launches {
		own := &of[max(0, slices.Index(streams, l.Stream))]
		own.at, own.launches = append(own.at, i), append(own.launches, l)
	}
	main, s := &of[0], Find(of[0].launches)
	main.key = make([]int, len(launches)) // twice the place among the main lane's launches, and odd between these
	for n, i := range main.at {
		main.key[i] = 2 * n
	}
	for _, other := range of[1:] {
		if s.Layers == 0 || !main.take(s, other) {
			return nil, nil
		}
	}
	for i := range launches {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(main.key[a], main.key[b]) })
	return order, streams
}

// lane is what runs on a stream, and where it stands among all launches.
type lane struct {
	launches []Launch
	at       []int
	key      []int // of the main lane: where all launches belong in it
}

// take gives the launches of another lane their places in the main one, whose structure is s: experts, and what ends
// their layer, behind the layer of the main one; other launches where they stand, between the layers. It fails where
// the lane runs other layers in a step than the main one.
func (l *lane) take(s Structure, o lane) bool {
	r := &recording{launches: o.launches, runs: runsOf(o.launches)}
	if r.join() != "" {
		return false
	}
	layers, ends, mainEnds := r.layers, Structure{Blocks: r.layers}.Ends(o.launches), s.Ends(l.launches)
	done, low := 0, -1
	place := func(to, high int) { // what stands before a layer, or behind all
		for ; done < to; done++ {
			at, _ := slices.BinarySearch(l.at, o.at[done])
			l.key[o.at[done]] = min(max(2*at-1, low), high)
		}
	}
	cuts := []int{0}
	for _, step := range s.steps {
		cuts = append(cuts, step.from, step.to)
	}
	cuts = slices.Compact(append(cuts, len(s.Blocks)))
	for i, from := range cuts[:len(cuts)-1] {
		to, until, n := cuts[i+1], math.MaxInt, 0
		if to < len(s.Blocks) { // the next step begins with a mark
			mark := slices.IndexFunc(s.of.segment(to), func(l Launch) bool { return l.Mark >= Sure })
			until = l.at[s.Blocks[to-1].Last+1+max(0, mark)]
		}
		for n < len(layers) && o.at[layers[n].First] < until {
			n++
		}
		some := i == 0 || to == len(s.Blocks) // the recording may begin or end within a step
		if n > to-from || n > 0 && (n < to-from && !some || o.at[layers[0].First] > l.at[s.Blocks[to-1].First]) {
			return false
		}
		if i == 0 {
			from = to - n
		}
		for m := range n {
			place(layers[m].First, 2*s.Blocks[from+m].First-1)
			low = 2*mainEnds[from+m] + 1
			for ; done <= ends[m]; done++ {
				l.key[o.at[done]] = low
			}
		}
		layers, ends = layers[n:], ends[n:]
	}
	place(len(o.at), math.MaxInt)
	return true
}
