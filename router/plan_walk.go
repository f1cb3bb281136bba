package router

// walk is one sender's way round the circles of a diagonal plan.
type walk struct {
	*circles
	place int     // of the next visit
	block []int32 // by place: the block of the next step there, counted from the place's first
	next  []int32 // by block: the next expert, an index into cells

	// Room for the two lists of common plans, so that filling allocates nothing.
	room [maxStackBlocks * 2]int32
}

// maxStackBlocks covers 512 ranks or groups; larger plans allocate per Fill.
const maxStackBlocks = 512

// begin copies where the sender starts.
func (w *walk) begin(enter, first []int32) {
	if len(enter) <= maxStackBlocks && len(first) <= maxStackBlocks {
		w.block = w.room[:len(enter)]
		w.next = w.room[maxStackBlocks:][:len(first)]
	} else {
		w.block = make([]int32, len(enter))
		w.next = make([]int32, len(first))
	}
	copy(w.block, enter)
	copy(w.next, first)
}

// fixedOnly repeats the experts that every token takes.
func (w *walk) fixedOnly(dst []int32) {
	for len(dst) > 0 {
		dst = dst[copy(dst, w.fixed):]
	}
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
