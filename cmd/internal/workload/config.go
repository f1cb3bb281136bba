package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/moebalance/moebalance/router"
)

// Config describes one launch.
type Config struct {
	Gate         router.Gate
	Hidden       int    // H, width of a hidden state
	Intermediate int    // I, width inside an expert
	Activation   string // SwiGLU or ReLU2
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
	// Placement says which rank owns which expert: Contiguous, or Greedy. Empty is
	// Contiguous.
	Placement string
	// Balanced returns the logits that replace those of the gate on a rank,
	// row-major [Tokens, Experts]; nil leaves the gate in charge.
	Balanced func(rank int) ([]float32, error)
	// Record keeps the counts of every timed step, for WriteStatistics.
	Record bool
	// Clock says which time a step takes: Wall or CPU.
	Clock string
	// Now is monotonic wall time since any fixed moment.
	Now func() time.Duration
}

// The clocks of a step; the package comment says when to use which.
const (
	Wall = "wall" // from the moment all ranks begin to the moment the last one ends
	CPU  = "cpu"  // for each phase the processor time of the rank that used most, added up
)

// Clocks lists them.
var Clocks = []string{Wall, CPU}

// DefaultClock is CPU where the system tells a thread's processor time, and
// Wall elsewhere.
func DefaultClock() string {
	if _, err := threadTime(); err != nil {
		return Wall
	}
	return CPU
}

// The activations of an expert.
const (
	SwiGLU = "swiglu" // down·(silu(gate·x) ⊙ up·x), three matrices
	ReLU2  = "relu2"  // down·max(0, up·x)², two matrices
)

// Activations lists them.
var Activations = []string{SwiGLU, ReLU2}

// The placements of experts.
const (
	Contiguous = "contiguous" // expert e on rank ⌊e·R/E⌋
	// Greedy places the experts of each layer anew after each step, by their load in it: the
	// busiest first, each on the rank with the least load that has room. Moving the weights
	// costs nothing here.
	Greedy = "greedy"
)

// Placements lists them.
var Placements = []string{Contiguous, Greedy}

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
	if c.Activation != SwiGLU && c.Activation != ReLU2 {
		return fmt.Errorf("unknown activation %q: want %s or %s", c.Activation, SwiGLU, ReLU2)
	}
	if c.Placement != "" && !slices.Contains(Placements, c.Placement) {
		return fmt.Errorf("unknown placement %q: want %s or %s", c.Placement, Contiguous, Greedy)
	}
	if c.Clock != Wall && c.Clock != CPU {
		return fmt.Errorf("unknown clock %q: want %s or %s", c.Clock, Wall, CPU)
	}
	if _, err := threadTime(); c.Clock == CPU && err != nil {
		return fmt.Errorf("clock %q: %w", c.Clock, err)
	}
	if !(c.Skew >= 0 && c.Skew <= 100) {
		return fmt.Errorf("want skew between 0 and 100, have %g", c.Skew)
	}
	if size := 4 * c.floats(); size > maxWeights {
		return fmt.Errorf("the weights need %d GiB, limit %d GiB: use fewer layers or smaller experts", size>>30, maxWeights>>30)
	}
	return nil
}

// maxWeights keeps a typing error from using all memory of the machine.
const maxWeights = 16 << 30

// floats is how many float32 values the layers' weights are.
func (c Config) floats() int64 {
	perExpert := int64(c.matrices()) * int64(c.Hidden) * int64(c.Intermediate)
	return int64(c.Layers) * int64(c.Gate.Shape.Experts) * (perExpert + int64(c.Hidden) + 1)
}

func (c Config) matrices() int {
	if c.Activation == SwiGLU {
		return 3
	}
	return 2
}

// placed is where the experts of a layer go by their load, the busiest first, each on the
// rank with the least load that has room for it.
func placed(perExpert []int64, ranks int) (router.Layout, error) {
	order := make([]int32, len(perExpert))
	for e := range order {
		order[e] = int32(e)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(perExpert[b], perExpert[a]) })
	held, load := make([][]int32, ranks), make([]int64, ranks)
	room := (len(perExpert) + ranks - 1) / ranks
	for _, e := range order {
		best := -1
		for r := range ranks {
			if len(held[r]) < room && (best < 0 || load[r] < load[best]) {
				best = r
			}
		}
		held[best], load[best] = append(held[best], e), load[best]+perExpert[e]
	}
	return router.Placed(len(perExpert), held)
}
