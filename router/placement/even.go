package placement

import (
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/router"
)

// Robust is a placement of one layer for traffic that differs from window to window: each
// has a load per expert, in a unit of its own, and counts once. It takes the copies that EPLB
// makes of the windows' mean shares, and swaps experts between ranks until no swap lowers
//
//	Σ over windows and ranks (load of the rank / mean load)²
//
// which evens all ranks in all windows. To lower the busiest rank's load alone fits the
// windows that it sees, and holds less on others. No rank gets two copies of an expert where
// that can be, and experts keep to the nodes of EPLB. Errors wrap router.ErrShape.
func Robust(windows [][]float64, s Size) ([]int32, error) {
	shares := normal(windows, s.Ranks)
	mean := make([]float32, len(windows[0]))
	for e, v := range meanOf(shares) {
		mean[e] = float32(v)
	}
	slots, err := eplb(mean, s, s.Ranks/s.hierarchy().Nodes)
	if err != nil {
		return nil, err
	}
	x := newEven(shares, slots, s)
	x.separate()
	for sweeps := 0; x.sweep() && sweeps < mostSweeps; sweeps++ {
	}
	return x.slots, nil
}

// mostSweeps bounds a search that usually ends after five.
const mostSweeps = 100

// normal are loads in shares of a window, in units of the mean rank's.
func normal(windows [][]float64, ranks int) [][]float64 {
	out := make([][]float64, len(windows))
	for w, load := range windows {
		total := floats.Sum(load)
		out[w] = make([]float64, len(load))
		for e, n := range load {
			if total > 0 {
				out[w][e] = n / total * float64(ranks)
			}
		}
	}
	return out
}

func meanOf(windows [][]float64) []float64 {
	mean := make([]float64, len(windows[0]))
	for _, w := range windows {
		for e, v := range w {
			mean[e] += v / float64(len(windows))
		}
	}
	return mean
}

// even is a placement whose experts change ranks. Sums over windows of products of loads are
// kept, so that a swap is judged in a few operations, however many windows there are.
type even struct {
	slots   []int32
	perRank int
	perNode int // ranks that experts do not leave
	experts int
	product []float64 // by expert and expert: of the loads of one copy of each
	onRank  []float64 // by rank and expert: of the rank's load and the copy's
	own     []float64 // by slot: of its copy with itself, less that with its rank
	changes []float64 // scratch of look, by slot of a rank
}

func newEven(shares [][]float64, slots []int32, s Size) *even {
	n := len(shares[0])
	x := &even{slots: slices.Clone(slots), perRank: len(slots) / s.Ranks, perNode: s.Ranks, experts: n,
		product: make([]float64, n*n), onRank: make([]float64, s.Ranks*n),
		own: make([]float64, len(slots)), changes: make([]float64, len(slots)/s.Ranks)}
	if s = s.hierarchy(); s.Nodes > 1 {
		x.perNode = s.Ranks / s.Nodes
	}
	copies, unit := make([]float64, n), make([]float64, n)
	for _, e := range slots {
		copies[e]++
	}
	for _, share := range shares {
		for e, v := range share {
			unit[e] = v / copies[e]
		}
		for e, a := range unit {
			for f, b := range unit {
				x.product[e*n+f] += a * b
			}
		}
	}
	for slot, e := range slots {
		x.add(slot/x.perRank, x.product[int(e)*n:], 1)
	}
	for rank := range s.Ranks {
		x.settle(rank)
	}
	return x
}

// add adds an expert's products to a rank's.
func (x *even) add(rank int, products []float64, sign float64) {
	row := x.onRank[rank*x.experts : (rank+1)*x.experts]
	for e := range row {
		row[e] += sign * products[e]
	}
}

// settle finds what each slot of a rank is by itself.
func (x *even) settle(rank int) {
	for slot := rank * x.perRank; slot < (rank+1)*x.perRank; slot++ {
		e := int(x.slots[slot])
		x.own[slot] = x.product[e*x.experts+e] - x.onRank[rank*x.experts+e]
	}
}

// look is by how much half the sum of squares changes if a slot swaps its expert with each
// slot of another rank.
func (x *even) look(a, rank int) []float64 {
	first, n := rank*x.perRank, x.experts
	base, own := x.own[a]+x.onRank[rank*n+int(x.slots[a])], x.own[first:first+x.perRank]
	onRank, product := x.onRank[a/x.perRank*n:][:n], x.product[int(x.slots[a])*n:][:n]
	for i, e := range x.slots[first : first+x.perRank] {
		x.changes[i] = base + own[i] + onRank[e] - 2*product[e]
	}
	return x.changes
}

// doubles reports whether a rank would hold an expert twice with it in that slot.
func (x *even) doubles(slot int, e int32) bool {
	first := slot - slot%x.perRank
	return slices.Contains(x.slots[first:slot], e) || slices.Contains(x.slots[slot+1:first+x.perRank], e)
}

func (x *even) allowed(a, b int) bool { return !x.doubles(b, x.slots[a]) && !x.doubles(a, x.slots[b]) }

func (x *even) swap(a, b int) {
	ea, eb := x.product[int(x.slots[a])*x.experts:], x.product[int(x.slots[b])*x.experts:]
	x.add(a/x.perRank, eb, 1)
	x.add(a/x.perRank, ea, -1)
	x.add(b/x.perRank, ea, 1)
	x.add(b/x.perRank, eb, -1)
	x.slots[a], x.slots[b] = x.slots[b], x.slots[a]
	x.settle(a / x.perRank)
	x.settle(b / x.perRank)
}

// partners are the ranks of a slot's node, from the first to before the last; its own is
// among them.
func (x *even) partners(slot int) (first, end int) {
	first = slot / x.perRank / x.perNode * x.perNode
	return first, first + x.perNode
}

// least is what counts as a change for the better, above what rounding makes of none.
const least = -1e-12

// sweep swaps each slot with every one that betters it, once.
func (x *even) sweep() (swapped bool) {
	for a := range x.slots {
		first, end := x.partners(a)
		for rank := first; rank < end; rank++ {
			if rank == a/x.perRank {
				continue
			}
			changes := x.look(a, rank)
			for i := range changes {
				if b := rank*x.perRank + i; changes[i] < least && x.allowed(a, b) {
					x.swap(a, b)
					changes, swapped = x.look(a, rank), true
				}
			}
		}
	}
	return swapped
}

// separate swaps away the second copy of an expert on a rank, at the least cost.
func (x *even) separate() {
	for a := range x.slots {
		if !x.doubles(a, x.slots[a]) {
			continue
		}
		to, cost := -1, 0.0
		for rank, end := x.partners(a); rank < end; rank++ {
			for i, d := range x.look(a, rank) {
				if b := rank*x.perRank + i; (to < 0 || d < cost) && x.allowed(a, b) {
					to, cost = b, d
				}
			}
		}
		if to >= 0 {
			x.swap(a, to)
		}
	}
}

// Mover betters running placements of several layers by one swap after another, each the one
// that evens most, as Robust does.
type Mover struct {
	layers []moving
}

// moving is a layer, with the best swap of two slots, and what it gains; 0 for no swap.
type moving struct {
	*even
	from router.Layout // that runs
	a, b int
	gain float64
}

// seek finds the best swap, of equal ones the first.
func (m *moving) seek() {
	m.gain = 0
	for a := range m.slots {
		_, end := m.partners(a)
		for rank := a/m.perRank + 1; rank < end; rank++ {
			for i, d := range m.look(a, rank) {
				if b := rank*m.perRank + i; d < least && -d > m.gain && m.allowed(a, b) {
					m.a, m.b, m.gain = a, b, -d
				}
			}
		}
	}
}

// NewMover takes of each layer the load of windows and experts, what runs, and the slots to
// begin with, as Grown gives them.
func NewMover(windows [][][]float64, running []router.Layout, slots [][]int32, s Size) *Mover {
	m := &Mover{}
	for l := range slots {
		x := moving{even: newEven(normal(windows[l], s.Ranks), slots[l], s), from: running[l]}
		x.seek()
		m.layers = append(m.layers, x)
	}
	return m
}

// Next makes the next swap, and says in which layer, and how many copies more are then moved
// in all. Not ok: no swap betters anything.
func (m *Mover) Next() (layer, copies int, ok bool) {
	for l, x := range m.layers {
		if x.gain > m.layers[layer].gain {
			layer = l
		}
	}
	x := &m.layers[layer]
	if x.gain == 0 {
		return 0, 0, false
	}
	a, b := x.a/x.perRank, x.b/x.perRank
	before := x.lacks(a) + x.lacks(b)
	x.swap(x.a, x.b)
	x.seek()
	return layer, x.lacks(a) + x.lacks(b) - before, true
}

// lacks is how many experts a rank must load.
func (m *moving) lacks(rank int) int {
	return lacks(m.from.Held(rank), m.slots[rank*m.perRank:(rank+1)*m.perRank])
}

// Slots is where the experts of a layer are now.
func (m *Mover) Slots(layer int) []int32 { return slices.Clone(m.layers[layer].slots) }

// Grown has the copies of a running placement where they are, and fills further slots, as
// many on each rank: the rank of the least load takes the expert of the largest load per copy
// that it lacks. Not ok where a rank has more copies than slots, or fewer experts to take.
func Grown(running router.Layout, windows [][]float64, s Size) (slots []int32, ok bool) {
	perRank, mean := s.Slots/s.Ranks, meanOf(normal(windows, s.Ranks))
	held, copies := make([][]int32, s.Ranks), make([]float64, len(mean))
	for r := range held {
		if held[r] = slices.Clone(running.Held(r)); len(held[r]) > perRank {
			return nil, false
		}
		for _, e := range held[r] {
			copies[e]++
		}
	}
	load := func(r int) (sum float64) {
		for _, e := range held[r] {
			sum += mean[e] / copies[e]
		}
		return sum
	}
	for {
		to, most := -1, -1
		for r := range held {
			if len(held[r]) < perRank && (to < 0 || load(r) < load(to)) {
				to = r
			}
		}
		if to < 0 {
			return slices.Concat(held...), true
		}
		for e, v := range mean {
			if !slices.Contains(held[to], int32(e)) && (most < 0 || v/copies[e] > mean[most]/copies[most]) {
				most = e
			}
		}
		if most < 0 {
			return nil, false
		}
		held[to] = append(held[to], int32(most))
		copies[most]++
	}
}
