package bench

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/gain"
)

// mostPairs bounds a design: more is a mistake in a flag.
const mostPairs = 100_000

// Design is how many launches there are and in what order. Pairs lie in blocks of two, normal-perfect
// then perfect-normal or the reverse, each block drawn at random: over an even number of pairs each arm
// is first equally often, and a linear drift over the session cancels within every block.
type Design struct {
	// Launches that hold all arms, each in blocks of segments; 0: one arm a launch, in Pairs.
	Launches int `json:"launches,omitempty"`

	Pairs int    `json:"pairs"`
	Seed  uint64 `json:"seed"` // of the order
}

// blocksPerLaunch is how many blocks a launch of all arms holds: at a noise of 1.5 % of a segment, five launches
// of two give ±1.5 points.
const blocksPerLaunch = 2

// Within reports whether each launch holds all arms.
func (d Design) Within() bool { return d.Launches > 0 }

// Check reports what is wrong with d.
func (d Design) Check() error {
	switch {
	case d.Launches > 1000:
		return fmt.Errorf("%d launches: want 1 to 1000", d.Launches)
	case !d.Within() && (d.Pairs < 1 || d.Pairs > mostPairs):
		return fmt.Errorf("%d pairs: want 1 to %d", d.Pairs, mostPairs)
	}
	return nil
}

// plan is the order of launches of the arms, the same for the same design. Each pair holds
// all arms one after another. Points that have launches of their own follow each other within a pair, in an order drawn
// for each. Launches have no attempts yet.
func (d Design) plan(arms []gain.Arm, values []string) (plan []Launch) {
	for i := range d.Launches {
		plan = append(plan, Launch{Position: i, Pair: i})
	}
	if d.Within() {
		return plan
	}
	if len(values) == 0 {
		values = []string{""}
	}
	for i, order := range control.Pairs(arms, d.Pairs, d.Seed) {
		for _, point := range points.Drawn(d.Seed, i, values) {
			for place, arm := range order {
				plan = append(plan, Launch{Position: len(plan), Arm: arm, Pair: i, Place: place, Point: point})
			}
		}
	}
	return plan
}

// seed is the n-th of the seeds that runs of a client are given, all different and small
// enough for any client.
func (d Design) seed(n int) uint64 { return d.Seed%(1<<24) + uint64(n) }
