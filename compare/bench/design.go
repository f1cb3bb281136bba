package bench

import (
	"cmp"
	"fmt"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/points"
)

// Design is how many launches there are and in what order. Pairs lie in blocks of two, normal-perfect
// then perfect-normal or the reverse, each block drawn at random: over an even number of pairs each arm
// is first equally often, and a linear drift over the session cancels within every block.
type Design struct {
	// Launches that hold all arms, each in blocks of segments; 0: one arm a launch, in Pairs.
	Launches int `json:"launches,omitempty" flag:"launches" preset:"5"`

	Pairs int    `json:"pairs" flag:"pairs" preset:"8"`
	Seed  uint64 `json:"seed" flag:"seed"` // of the order
}

// blocksPerLaunch is how many blocks a launch of all arms holds: at a noise of 1.5 % of a segment, five launches
// of two give ±1.5 points.
const blocksPerLaunch = 2

// Within reports whether each launch holds all arms.
func (d Design) Within() bool { return d.Launches > 0 }

// mostUnits bounds the launches or pairs of a design: more is a mistake in a flag.
const mostUnits = 10_000

// Check reports what is wrong with d.
func (d Design) Check() error {
	if n := cmp.Or(d.Launches, d.Pairs); n < 1 || n > mostUnits {
		return fmt.Errorf("%d launches or pairs: want 1 to %d", n, mostUnits)
	}
	return nil
}

// plan is the order of the launches, the same for the same spec. Each pair holds
// all arms one after another. Points that have launches of their own follow each other within a pair, in an order drawn
// for each. Launches have no attempts yet.
func (s Spec) plan() (plan []Launch) {
	for i := range s.Design.Launches {
		plan = append(plan, Launch{Position: i, Pair: i})
	}
	if s.Design.Within() {
		return plan
	}
	values := []string{""}
	if s.perLaunch() {
		values = s.Points.Values
	}
	const stream = 0x6d6f6562616c // of the pairs' own
	for i, order := range control.Orders(s.arms(), s.Design.Pairs, s.Design.Seed, stream) {
		for _, point := range points.Drawn(s.Design.Seed, i, values) {
			for _, arm := range order {
				plan = append(plan, Launch{Position: len(plan), Arm: arm, Pair: i, Point: point})
			}
		}
	}
	return plan
}

// seed is the n-th of the seeds that runs of a client are given, all different and small
// enough for any client.
func (d Design) seed(n int) uint64 { return d.Seed%(1<<24) + uint64(n) }
