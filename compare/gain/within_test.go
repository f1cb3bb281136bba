package gain

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A withinCell is a kind of campaign whose launches hold all arms: standard deviations of
// a launch, of what it adds to the gain, and of a segment; and which share of segments is
// 25 % slower.
type withinCell struct {
	launches, blocks             int
	launch, interaction, segment float64
	slow                         float64
}

func (c withinCell) String() string {
	return fmt.Sprintf("%d launches of %d blocks, segment %.1f %%, interaction %.2f %%, %2.0f %% of segments slow",
		c.launches, c.blocks, 100*c.segment, 100*c.interaction, 100*c.slow)
}

// segments are those of one campaign of a log gain, ABBA and BAAB in turn.
func (c withinCell) segments(rng *rand.Rand, gain float64) (out []Launch) {
	for i := range c.launches {
		base, extra := c.launch*rng.NormFloat64(), c.interaction*rng.NormFloat64()
		for b := range c.blocks {
			for place, side := range []int{0, 1, 1, 0} {
				side ^= (i + b) % 2
				x := base + c.segment*rng.NormFloat64()
				if side == 1 {
					x += gain + extra
				}
				if rng.Float64() < c.slow {
					x += math.Log(0.75)
				}
				out = append(out, Launch{Pair: i, Block: b, Arm: Arms[side], Position: 4*b + place, Status: StatusOK,
					Value: 1000 * math.Exp(x)})
			}
		}
	}
	return out
}

func within(launches []Launch) Campaign {
	c := valid(launches)
	c.Design = WithinLaunch
	return c
}

var simulateWithin = flag.Bool("within", false, "simulate all cells of campaigns whose launches hold all arms")

func TestWithinTable(t *testing.T) {
	for _, c := range []withinCell{{launches: 5, blocks: 2, launch: .05, interaction: .0055, segment: .015}} {
		rng := rand.New(rand.NewPCG(7, 7))
		covers, width := 0.0, 0.0
		n := 300
		for range n {
			r := Judge(within(c.segments(rng, math.Log1p(.1))))
			if r.Gain.Low <= .1 && .1 <= r.Gain.High {
				covers++
			}
			width += float64(r.Gain.High-r.Gain.Low) / 2
		}
		t.Log(c, covers/float64(n), width/float64(n))
	}
	rng := rand.New(rand.NewPCG(7, 7))
	r := Judge(within(withinCell{5, 2, .05, .0055, .015, 0}.segments(rng, .1)))
	t.Logf("%+v", r)
}
