package router

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/router/input"
)

// Mode says whose tokens the ranks of one layer hold.
type Mode string

const (
	// DEP is data-parallel attention with expert parallelism: every rank has
	// tokens of its own, and the layer routes all of them together.
	DEP Mode = "dep"
	// TEP is tensor-parallel attention with expert parallelism: all ranks hold
	// the same tokens and must agree on their routing.
	TEP Mode = "tep"
)

// ParseMode reads "dep" or "tep".
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); m == DEP || m == TEP {
		return m, nil
	}
	return "", fmt.Errorf("unknown mode %q: want dep (own tokens per rank) or tep (the same tokens on all ranks)", s)
}

// Layout says which rank owns which expert. It is immutable; the zero value
// has no ranks. With replicas an expert has several places, on different ranks or,
// as some balancers leave it, on one.
type Layout struct {
	held   [][]int32 // by rank: the logical expert of each local position
	places [][]int   // by expert: the ranks of its copies, in order
}

// Contiguous gives rank r the experts [r·E/R, (r+1)·E/R). When R does not
// divide E the first E mod R ranks own one expert more, as TensorRT-LLM's
// base class splits them.
func Contiguous(experts, ranks int) (Layout, error) {
	if experts < 1 || ranks < 1 || ranks > experts {
		return Layout{}, fmt.Errorf("%w: want between 1 and %d ranks for %d experts, have %d", ErrShape,
			max(experts, 0), experts, ranks)
	}
	held := make([][]int32, ranks)
	next := int32(0)
	for r := range held {
		for range (experts + ranks - 1 - r) / ranks {
			held[r] = append(held[r], next)
			next++
		}
	}
	return newLayout(experts, held), nil
}

// Placed takes a given placement: held[r] lists the logical experts whose
// copies rank r holds, in local order. Every expert needs at least one copy.
func Placed(experts int, held [][]int32) (Layout, error) {
	if experts < 1 {
		return Layout{}, fmt.Errorf("%w: want at least 1 expert, have %d", ErrShape, experts)
	}
	for r, local := range held {
		for _, e := range local {
			if e < 0 || int(e) >= experts {
				return Layout{}, fmt.Errorf("%w: rank %d holds expert %d, want 0 to %d", ErrShape, r, e, experts-1)
			}
		}
	}
	l := newLayout(experts, held)
	for e, places := range l.places {
		if len(places) == 0 {
			return Layout{}, fmt.Errorf("%w: no rank holds expert %d", ErrShape, e)
		}
	}
	return l, nil
}

// ReadLayout places experts as the JSON list of the experts of each rank in a file says.
func ReadLayout(path string, experts int) (Layout, error) {
	text, err := input.ReadFile(path, mostSettings)
	if err != nil {
		return Layout{}, err
	}
	var held [][]int32
	if err := json.Unmarshal(text, &held); err != nil {
		return Layout{}, &input.Error{File: path, Expected: "a JSON list of the experts of each rank",
			Err: err, Try: "write one such as [[0,1],[2,3]]"}
	}
	return Placed(experts, held)
}

func newLayout(experts int, held [][]int32) Layout {
	l := Layout{held: make([][]int32, len(held)), places: make([][]int, experts)}
	for r, local := range held {
		l.held[r] = append([]int32(nil), local...)
		for _, e := range local {
			l.places[e] = append(l.places[e], r)
		}
	}
	return l
}

// Ranks is R.
func (l Layout) Ranks() int { return len(l.held) }

// Experts is E, the logical experts.
func (l Layout) Experts() int { return len(l.places) }

// Held lists the logical experts of rank r in local order. The slice belongs
// to the layout and must not be changed.
func (l Layout) Held(r int) []int32 { return l.held[r] }

// Places lists the ranks of the copies of expert e, in order; a rank with two copies twice. The
// slice belongs to the layout and must not be changed.
func (l Layout) Places(e int) []int { return l.places[e] }

// Replicated reports whether any expert has more than one copy.
func (l Layout) Replicated() bool {
	return slices.ContainsFunc(l.places, func(places []int) bool { return len(places) > 1 })
}

// PerRank is L = E/R and true where rank r owns the experts [r·L, (r+1)·L) alone: owner(e) = e/L.
func (l Layout) PerRank() (int, bool) {
	n := l.Experts() / max(1, l.Ranks())
	for e, places := range l.places {
		if n*l.Ranks() != l.Experts() || !slices.Equal(places, []int{e / n}) {
			return n, false
		}
	}
	return n, n > 0
}

// RankLoad turns slots per expert into slots per rank; see deal.
// len(perExpert) must be Experts.
func (l Layout) RankLoad(perExpert []int64) []int64 {
	out := make([]int64, l.Ranks())
	l.deal(perExpert, func(rank int, slots int64) { out[rank] += slots })
	return out
}

// CopyLoad turns slots per expert into slots per copy, expert after expert and
// an expert's copies in rank order. Without replicas it is perExpert.
func (l Layout) CopyLoad(perExpert []int64) []int64 {
	out := make([]int64, 0, len(perExpert))
	l.deal(perExpert, func(_ int, slots int64) { out = append(out, slots) })
	return out
}

// deal gives the slots of experts to their copies: evenly, the remainder going to the
// first copies in rank order. That is what a dispatcher which deals slots out in
// turn does.
func (l Layout) deal(perExpert []int64, got func(rank int, slots int64)) {
	for e, n := range perExpert {
		left := int64(len(l.places[e]))
		for _, rank := range l.places[e] {
			share := n
			if left > 1 { // divisions are dear
				share = (n + left - 1) / left
			}
			got(rank, share)
			n, left = n-share, left-1
		}
	}
}
