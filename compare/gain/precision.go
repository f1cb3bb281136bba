package gain

import (
	"math"

	"github.com/moebalance/moebalance/router"
)

// equivalenceMargin is the gain, as a fraction, below which arms count as the
// same: the ±1 % that criterion and poop use as their noise threshold.
const equivalenceMargin = 0.01

// Precision says how sharp a campaign is: whether it shows the arms to be equal, and what more
// blocks would take away.
type Precision struct {
	// Equivalent is true when two one-sided tests (TOST) show the gain to lie
	// within ±Margin at the level of the campaign; P is the larger of their p-values,
	// by the method of the gain.
	Margin     float64       `json:"margin"`
	Equivalent bool          `json:"equivalent"`
	P          router.Number `json:"p"`
	// BlockShare is how much of the variance between launches that hold all arms their blocks
	// explain: what more blocks per launch would take away.
	BlockShare router.Number `json:"block_share,omitempty"`
}

func precisionOf(logs logGains, g Gain, confidence float64) Precision {
	margin := math.Log1p(equivalenceMargin)
	within := logs.crossover(confidence).PWithin(-margin, margin)
	return Precision{Margin: equivalenceMargin, Equivalent: within < 1-confidence && g.Low.Defined(),
		P: router.Number(within)}
}
