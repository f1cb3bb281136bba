package workload

import (
	"fmt"

	"github.com/moebalance/moebalance/router"
)

// Config describes one launch.
type Config struct {
	Gate         router.Gate
	Hidden       int // H, width of a hidden state
	Intermediate int // I, width inside an expert
	Layers       int
	Ranks        int
	Tokens       int // T, tokens per rank and step
	Steps        int // timed steps
	Warmup       int // steps before them, not timed and not counted
	// Skew makes some experts popular: the gate's bias falls as −Skew·ln(1+i)
	// over the experts in a random order per layer, which makes the chance of
	// the i-th about (1+i)^−Skew. 0 leaves the load to chance.
	Skew float64
	Seed uint64
	// Layouts say which rank owns which expert, layer by layer, one copy of each; nil is
	// contiguous. Placement is what the result calls them.
	Layouts   []router.Layout
	Placement string
	// Balanced returns the logits that replace those of the gate on a rank,
	// row-major [Tokens, Experts]; nil leaves the gate in charge.
	Balanced func(rank int) ([]float32, error)
	// Record keeps the counts of every timed step, for WriteStatistics.
	Record bool
}

// Contiguous is the placement of expert e on rank ⌊e·R/E⌋.
const Contiguous = "contiguous"

// Validate finds contradictions before any memory is taken.
func (c Config) Validate() error {
	if err := c.Gate.Validate(); err != nil {
		return err
	}
	for _, n := range []struct {
		name               string
		value, least, most int
	}{
		{"hidden", c.Hidden, 1, 1 << 16}, {"intermediate", c.Intermediate, 1, 1 << 16},
		{"layers", c.Layers, 1, 1 << 10}, {"ranks", c.Ranks, 1, c.Gate.Shape.Experts},
		{"tokens", c.Tokens, 1, 1 << 20}, {"steps", c.Steps, 1, 1 << 24}, {"warmup", c.Warmup, 0, 1 << 24},
	} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("want %s between %d and %d, have %d", n.name, n.least, n.most, n.value)
		}
	}
	if c.Layouts != nil && len(c.Layouts) != c.Layers {
		return fmt.Errorf("the placement has %d layers, want %d", len(c.Layouts), c.Layers)
	}
	for i, l := range c.Layouts {
		if l.Experts() != c.Gate.Shape.Experts || l.Ranks() != c.Ranks || l.Replicated() {
			return fmt.Errorf("layer %d of the placement: want one copy of %d experts on %d ranks", i,
				c.Gate.Shape.Experts, c.Ranks)
		}
	}
	if !(c.Skew >= 0 && c.Skew <= 100) {
		return fmt.Errorf("want skew between 0 and 100, have %g", c.Skew)
	}
	if size := 4 * c.floats(); size > maxWeights {
		return fmt.Errorf("the weights need %d GiB, limit %d GiB: use fewer layers or smaller experts", size>>30,
			maxWeights>>30)
	}
	return nil
}

// maxWeights keeps a typing error from using all memory of the machine.
const maxWeights = 16 << 30

// floats is how many float32 values the layers' weights are.
func (c Config) floats() int64 {
	perExpert := 3 * int64(c.Hidden) * int64(c.Intermediate)
	return int64(c.Layers) * int64(c.Gate.Shape.Experts) * (perExpert + int64(c.Hidden) + 1)
}
