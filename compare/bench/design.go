package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Order is a rule for which arm of a pair is launched first.
type Order string

// The orders. All are balanced: over an even number of pairs each arm is first
// equally often.
const (
	// ABBA lays pairs in blocks of two, normal-perfect then perfect-normal or
	// the reverse, each block drawn at random. A linear drift over the session
	// cancels within every block.
	ABBA Order = "abba"
	// Random draws which half of the pairs starts with the normal arm.
	Random Order = "random"
)

// Orders lists them.
var Orders = []Order{ABBA, Random}

// mostPairs bounds a design: more is a mistake in a flag.
const mostPairs = 100_000

// Design is how many launches there are and in what order.
type Design struct {
	Pairs        int    `json:"pairs"`         // timed pairs; with UntilDecided, the cap
	FloorPairs   int    `json:"floor_pairs"`   // A/A pairs, spread over the campaign
	WarmUps      int    `json:"warm_ups"`      // launches of each arm before the first pair
	Profiled     bool   `json:"profiled"`      // one profiled pair after the last
	Order        Order  `json:"order"`         // ABBA where empty
	Seed         uint64 `json:"seed"`          // of the order
	UntilDecided bool   `json:"until_decided"` // look at the pairs of Looks and stop when decided
}

// Check reports what is wrong with d.
func (d Design) Check() error {
	switch {
	case d.Pairs < 1 || d.Pairs > mostPairs:
		return fmt.Errorf("%d pairs: want 1 to %d", d.Pairs, mostPairs)
	case d.FloorPairs < 0 || d.FloorPairs > mostPairs:
		return fmt.Errorf("%d A/A pairs: want 0 to %d", d.FloorPairs, mostPairs)
	case d.WarmUps < 0 || d.WarmUps > 1000:
		return fmt.Errorf("%d warm-up launches: want 0 to 1000", d.WarmUps)
	case !slices.Contains(Orders, d.Order):
		return fmt.Errorf("unknown order %q: want one of %v", d.Order, Orders)
	}
	return nil
}

// Plan is the order of launches, the same for the same design. A/A pairs stand
// at equal distances between the timed ones. Launches have no attempts yet.
func (d Design) Plan() []Launch {
	draw := rand.New(rand.NewPCG(d.Seed, 0x6d6f6562616c)) // the stream is the design's own
	var plan []Launch
	add := func(kind Kind, pair, place int, arm Arm) {
		plan = append(plan, Launch{Position: len(plan), Kind: kind, Arm: arm, Pair: pair, Place: place})
	}
	for i := range 2 * d.WarmUps {
		add(WarmUp, -1, i%2, Arms[i%2])
	}
	floor := 0
	for i, first := range d.firsts(draw) {
		add(Timed, i, 0, first)
		add(Timed, i, 1, other(first))
		// After pair i, floor pair j is due when (i+1)/Pairs reaches (j+1)/FloorPairs.
		for floor < d.FloorPairs && (i+1)*d.FloorPairs >= (floor+1)*d.Pairs {
			add(Floor, floor, 0, Normal)
			add(Floor, floor, 1, Normal)
			floor++
		}
	}
	if d.Profiled {
		add(Profiled, 0, 0, Normal)
		add(Profiled, 0, 1, Perfect)
	}
	return plan
}

// firsts draws the first arm of each pair.
func (d Design) firsts(draw *rand.Rand) []Arm {
	firsts := make([]Arm, d.Pairs)
	if d.Order == Random {
		odd := draw.IntN(2) // whose turn the odd pair is
		for i := range firsts {
			firsts[i] = Arms[(i+odd)%2]
		}
		draw.Shuffle(len(firsts), func(i, j int) { firsts[i], firsts[j] = firsts[j], firsts[i] })
		return firsts
	}
	for i := 0; i < len(firsts); i += 2 {
		firsts[i] = Arms[draw.IntN(2)]
		if i+1 < len(firsts) {
			firsts[i+1] = other(firsts[i])
		}
	}
	return firsts
}

// other is the arm that a is not.
func other(a Arm) Arm {
	if a == Normal {
		return Perfect
	}
	return Normal
}
