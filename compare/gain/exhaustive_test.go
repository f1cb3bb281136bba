//go:build exhaustive

package gain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// campaigns are simulated of each cell.
const campaigns = 2000

// Every cell of the package comment's tables, 2,000 campaigns each, through the code of Judge: between 93.5 and 97.5 %
// of the intervals hold the truth. Of six pairs slow launches leave wide intervals, which may
// hold it more often.
func TestCoverageOfPairs(t *testing.T) {
	for _, k := range kinds {
		line := fmt.Sprintf("%-32s", k.name)
		for _, pairs := range []int{6, 8, 12, 20} {
			rng := rand.New(rand.NewPCG(23, uint64(pairs)))
			o := simulate(campaigns, DefaultThreshold, func() Campaign { return k.campaign(rng, pairs, DefaultThreshold) })
			line += fmt.Sprintf("  %5.1f %5.1f", 100*o.covers, 100*o.half)
			most := 0.975
			if k.slow && pairs < 8 {
				most = 1
			}
			bounds(t, fmt.Sprintf("%s, %d pairs", k.name, pairs), o, most)
		}
		t.Log(line)
	}
}

// bounds wants the coverage between 93.5 % and a share.
func bounds(t *testing.T, name string, o outcome, most float64) {
	if o.covers < 0.935 || o.covers > most {
		t.Errorf("%s: covers %.4f", name, o.covers)
	}
}

// Likewise launches that hold all arms.
func TestCoverageWithinLaunches(t *testing.T) {
	for _, launches := range []int{2, 3, 5, 8} {
		for _, blocks := range []int{1, 2, 4, 6} {
			var line strings.Builder
			fmt.Fprintf(&line, "%d %d", launches, blocks)
			for _, c := range []withinCell{{segment: 0.003}, {segment: 0.015}, {segment: 0.05},
				{segment: 0.015, interaction: 0.02}, {segment: 0.015, slow: 0.1}, {segment: 0.015, slow: 0.1, one: true}} {
				c.launches, c.blocks, c.launch, c.interaction = launches, blocks, 0.05, max(c.interaction, 0.0055)
				rng := rand.New(rand.NewPCG(17, uint64(100*launches+blocks)))
				o := simulate(campaigns, DefaultThreshold,
					func() Campaign { return within(c.segments(rng, math.Log1p(DefaultThreshold))) })
				fmt.Fprintf(&line, "  %5.1f %5.2f", 100*o.covers, 100*o.half)
				most := 0.975
				if c.slow > 0 && (launches < 5 || blocks < 2) {
					most = 1
				}
				bounds(t, fmt.Sprintf("%+v", c), o, most)
			}
			t.Log(line.String())
		}
	}
}

func TestEverySlowLaunch(t *testing.T) {
	for _, k := range kinds {
		slowLaunches(t, k, 2000, []int{8, 12, 20})
	}
}

func TestEveryDoseCoverage(t *testing.T) { doseCoverage(t, campaigns, 1, 2, 3, 5, 8) }
