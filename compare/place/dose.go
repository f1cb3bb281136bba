package place

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Dose is a campaign that measured time over load imbalance, from which the gain of a placement is
// predicted without a cost of expert work.
type Dose struct {
	Tokens float64 // in a step of all ranks; 0 where not known
	Result gain.Result
}

// sameTokens is by how much of them tokens may differ from those that were measured.
const sameTokens = 0.1

// tokensPoint is the name of a point whose value is tokens of a step.
const tokensPoint = "tokens"

// predict is the gain of a placement by its load on judged windows: at the tokens of a step, or where they
// are not known, at each point that was measured.
func (d *Dose) predict(p Placement) []gain.Predicted {
	if d == nil || !p.Judged.Defined() {
		return nil
	}
	all := d.Result.Predict(p.Ranks, p.Baseline, p.Judged)
	list := slices.DeleteFunc(slices.Clone(all), func(at gain.Predicted) bool {
		return d.Tokens > 0 && at.Point == tokensPoint && math.Abs(d.Tokens/at.Value.Float64()-1) > sameTokens
	})
	if len(list) > 0 {
		return list
	}
	none := all[0].Refuse("not_measured", "point", tokensPoint, "tokens", d.Tokens)
	none.Value = router.Number(d.Tokens)
	return []gain.Predicted{none}
}
