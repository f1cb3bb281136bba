package workload

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moebalance/moebalance/router"
)

// phase is a part of a layer; a rank works in each and then waits for the others.
type phase int

const (
	dispatch phase = iota // normalize, gate, route, pack
	expert                // the matrix products of the experts a rank owns
	combine               // weighted sum into the hidden states
	phases
)

// tileRows are the most rows that an expert runs on at once.
const tileRows = 64

// rank is one rank's memory. Others read its packed rows and write into its
// returned rows in the experts phase.
type rank struct {
	id       int
	m        *model
	router   *router.Router
	balanced []float32 // logits that replace the gate's; nil without

	hidden    []float32 // [T, H]
	normal    []float32 // [T, H], normalized
	logits    []float32 // [T, E]
	ids       []int32   // [T, k]
	weights   []float32 // [T, k]
	packedRow []int     // [T·k]: of a slot
	start     []int     // [E+1]: the first packed row of an expert
	packed    []float32 // [T·k, H], in the order of experts: what the rank sends
	returned  []float32 // [T·k, H]: what comes back
	up, gate  []float32 // scratch of an expert

	spent time.Duration // in the phase that is ending
	err   error
}

// now is the processor time of the rank's own thread, which calls it.
func (r *rank) now() time.Duration {
	var t unix.Timespec
	r.err = cmp.Or(r.err, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t))
	return time.Duration(t.Nano())
}

func newRank(id int, m *model) (*rank, error) {
	c := m.c
	slots := c.Tokens * c.Gate.Shape.TopK
	r := &rank{
		id: id, m: m,
		hidden: make([]float32, c.Tokens*c.Hidden), normal: make([]float32, c.Tokens*c.Hidden),
		logits: make([]float32, c.Tokens*c.Gate.Shape.Experts),
		ids:    make([]int32, slots), weights: make([]float32, slots),
		packedRow: make([]int, slots), start: make([]int, c.Gate.Shape.Experts+1),
		packed: make([]float32, slots*c.Hidden), returned: make([]float32, slots*c.Hidden),
		up: make([]float32, tileRows*c.Intermediate), gate: make([]float32, tileRows*c.Intermediate),
	}
	var err error
	if r.router, err = router.NewRouter(c.Gate); err != nil {
		return nil, err
	}
	return r, nil
}

// dispatch routes the rank's tokens in a layer and packs a row per slot.
func (r *rank) dispatch(l int) error {
	c, layer := r.m.c, &r.m.layers[l]
	normalize(r.normal, r.hidden, c.Tokens, c.Hidden)
	e := c.Gate.Shape.Experts
	product(r.logits, r.normal, layer.gate, c.Tokens, e, c.Hidden)
	for t := range c.Tokens {
		for i, b := range layer.bias {
			r.logits[t*e+i] += b
		}
	}
	if r.balanced != nil {
		copy(r.logits, r.balanced)
	}
	k := c.Gate.Shape.TopK
	for t := range c.Tokens {
		if err := r.router.Route(r.logits[t*e:(t+1)*e], r.ids[t*k:(t+1)*k], r.weights[t*k:(t+1)*k]); err != nil {
			return fmt.Errorf("layer %d, token %d of rank %d: %w", l, t, r.id, err)
		}
	}
	r.pack()
	return nil
}

// pack sorts the slots by expert, token order within one, and copies the rows.
func (r *rank) pack() {
	h, k := r.m.c.Hidden, r.m.c.Gate.Shape.TopK
	clear(r.start)
	for _, e := range r.ids {
		r.start[e+1]++
	}
	for e := 1; e < len(r.start); e++ {
		r.start[e] += r.start[e-1]
	}
	for slot, e := range r.ids {
		row := r.start[e]
		r.start[e]++
		r.packedRow[slot] = row
		t := slot / k
		copy(r.packed[row*h:(row+1)*h], r.normal[t*h:(t+1)*h])
	}
	// Every start has moved to its expert's end, which is the next one's start.
	copy(r.start[1:], r.start[:len(r.start)-1])
	r.start[0] = 0
}

// run computes the experts this rank owns on the rows of all ranks.
func (r *rank) run(l int, all []*rank) {
	c := r.m.c
	h := c.Hidden
	for _, e := range r.m.layout.Held(r.id) {
		x := &r.m.layers[l].experts[e]
		for _, from := range all {
			for row, end := from.start[e], from.start[e+1]; row < end; {
				n := min(tileRows, end-row)
				x.forward(from.returned[row*h:], from.packed[row*h:], r.up, r.gate, n, h, c.Intermediate)
				row += n
			}
		}
	}
}

// combine adds the weighted rows that came back to the hidden states.
func (r *rank) combine() {
	h, k := r.m.c.Hidden, r.m.c.Gate.Shape.TopK
	for slot, row := range r.packedRow {
		w := r.weights[slot]
		back := r.returned[row*h : (row+1)*h]
		state := r.hidden[slot/k*h : (slot/k+1)*h]
		for i, v := range back {
			state[i] += w * v
		}
	}
}
