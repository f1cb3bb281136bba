package evidence

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Load is the load of the worst layer of a launch, over ranks or over experts.
type Load struct {
	Over           string
	MaxMean, Floor router.Number // max/mean, and the least that whole slots allow: 1 or more where that is known
}

// Loads are those that were measured, over ranks before experts.
type Loads []Load

// Measured are the loads of ranks and of experts that are known.
func Measured(ranks, rankFloor, experts, expertFloor router.Number) Loads {
	return slices.DeleteFunc(Loads{{"ranks", ranks, rankFloor}, {"experts", experts, expertFloor}},
		func(l Load) bool { return !l.MaxMean.Defined() })
}

func (w Loads) String() string {
	if len(w) == 0 {
		return "no loads reported"
	}
	var texts []string
	for _, l := range w {
		text := quantity.Ratio(l.MaxMean) + " over " + l.Over
		if l.Floor >= 1 {
			text += " (floor " + quantity.Ratio(l.Floor) + ")"
		}
		texts = append(texts, text)
	}
	return "worst layer max/mean " + strings.Join(texts, ", ")
}

// Within reports whether there are any, and max/mean of all is at most so many times its
// floor; where that is not known, times the 1 of large batches.
func (w Loads) Within(limit router.Number) bool {
	return len(w) > 0 && !slices.ContainsFunc(w, func(l Load) bool {
		floor := router.Number(1)
		if l.Floor >= 1 {
			floor = l.Floor
		}
		return l.MaxMean > limit*floor
	})
}
