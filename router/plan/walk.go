package plan

// walk is one sender's way round the circles of a diagonal plan.
type walk struct {
	*circles
	place int     // of the next visit
	block []int32 // by place: the block of the next step there, counted from the place's first
	next  []int32 // by block: the next expert, an index into cells
}

// stackBlocks covers 512 ranks or groups; larger plans allocate per Fill.
const stackBlocks = 512

// fillWalk deals out a sender's own tokens, then its part of a tail.
func (d *diagonal) fillWalk(dst []int32, sender int) {
	var room [2 * stackBlocks]int32
	w := walk{circles: &d.circles, place: d.start[sender]}
	if places, blocks := d.outer, len(d.edge)-1; places <= stackBlocks && blocks <= stackBlocks {
		w.block, w.next = room[:places], room[stackBlocks:][:blocks]
	} else {
		w.block, w.next = make([]int32, places), make([]int32, blocks)
	}
	end := d.endings[sender]
	main := len(dst) - end.tokens*d.problem.Shape.TopK
	w.begin(d.enter[sender], d.first[sender])
	once := min(main, d.period)
	w.fill(dst[:once])
	for n := once; n < main; n *= 2 {
		copy(dst[n:main], dst[:n])
	}
	if end.tail >= 0 {
		row := len(d.endings) + end.tail
		w.begin(d.enter[row], d.first[row])
		w.fillTail(dst[main:], &d.tails[end.tail], end.skip)
	}
}

// begin copies where a row starts.
func (w *walk) begin(enter, first []int32) {
	copy(w.block, enter)
	copy(w.next, first)
}

// fill deals out whole tokens.
func (w *walk) fill(dst []int32) {
	stride := w.window
	for len(dst) > 0 {
		dst = dst[copy(dst, w.fixed):]
		for i := range stride {
			place := w.place
			if w.place++; w.place == w.outer {
				w.place = 0
			}
			if w.visits {
				b := w.step(place)
				for lap := range w.laps {
					dst[i+lap*stride] = w.take(b)
				}
			} else {
				for lap := range w.laps {
					dst[i+lap*stride] = w.take(w.step(place))
				}
			}
		}
		dst = dst[stride*w.laps:]
	}
}

// step is the present block of a place, and moves on to its next one.
func (w *walk) step(place int) (block int) {
	y := int(w.block[place])
	if w.block[place]++; int(w.block[place]) == w.inner {
		w.block[place] = 0
	}
	return place*w.inner + y
}

// take is the present expert of a block, and moves on to its next one.
func (w *walk) take(block int) int32 {
	e := w.next[block]
	if w.next[block]++; w.next[block] == w.edge[block+1] {
		w.next[block] = w.edge[block]
	}
	return w.cells[e]
}
