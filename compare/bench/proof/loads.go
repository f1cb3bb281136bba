package proof

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// LoadProof is how even the loads are that a launch recorded: max/mean of the layer that
// is furthest above its floor, which is the best that indivisible slots allow. Undefined
// where the files do not say.
type LoadProof struct {
	Source            string        `json:"source"`
	Ranks             int           `json:"ranks"`             // 0 unknown
	Experts           int           `json:"experts,omitempty"` // 0 unknown
	TopK              int           `json:"top_k"`             // 0 unknown
	RankMaxOverMean   router.Number `json:"rank_max_over_mean"`
	RankFloor         router.Number `json:"rank_floor"`
	RankMean          router.Number `json:"rank_mean"` // of max/mean over layers
	ExpertMaxOverMean router.Number `json:"expert_max_over_mean"`
	ExpertFloor       router.Number `json:"expert_floor"`
	// Slots are by layer; Recorded is the share of the steps that hold them,
	// 0 where the files do not say.
	Slots    map[int]int64 `json:"slots,omitempty"`
	Recorded float64       `json:"recorded,omitempty"`
	// Placed says that the loads of ranks are by the recorded or the named placement; else
	// they hold for contiguous experts.
	Placed bool `json:"placed,omitempty"`
}

// reported are the loads of a report.
func reported(said metrics.Proof) LoadProof {
	p := LoadProof{RankMaxOverMean: router.Undefined(), RankFloor: said.RankFloor, ExpertMaxOverMean: router.Undefined(),
		ExpertFloor: said.ExpertFloor}
	for _, l := range said.Layers {
		p.RankMaxOverMean = larger(p.RankMaxOverMean, l.RankMaxOverMean)
		p.ExpertMaxOverMean = larger(p.ExpertMaxOverMean, l.ExpertMaxOverMean)
	}
	return p
}

// The limits for loads. A perfect arm's layer may exceed the floor by what
// indivisible loads cost; a normal arm is proved unbalanced by one layer beyond what
// rounding can explain.
const (
	evenWithin   = 1.05 // max/mean of every layer of a perfect launch, at most
	unevenBeyond = 1.01 // max/mean of some layer of a normal launch, more than this
)

// load is max/mean of the worst layer, over ranks or over experts, and the least that whole slots allow.
type load struct {
	over           string
	maxMean, floor router.Number // the floor is below 1 where it is not known
}

type loads []load

// loads are those that are known, over ranks before experts.
func (p LoadProof) loads() loads {
	return slices.DeleteFunc(loads{{"ranks", p.RankMaxOverMean, p.RankFloor},
		{"experts", p.ExpertMaxOverMean, p.ExpertFloor}}, func(l load) bool { return !l.maxMean.Defined() })
}

func (w loads) String() string {
	var texts []string
	for _, l := range w {
		text := quantity.Ratio(l.maxMean) + " over " + l.over
		if l.floor >= 1 {
			text += " (floor " + quantity.Ratio(l.floor) + ")"
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return "no loads reported"
	}
	return "worst layer max/mean " + strings.Join(texts, ", ")
}

// within reports whether there are any, and all are at most so many times their floor, or the 1 of large batches.
func (w loads) within(limit router.Number) bool {
	return len(w) > 0 && !slices.ContainsFunc(w, func(l load) bool { return l.maxMean > limit*larger(l.floor, 1) })
}

// larger is the larger of two numbers, as far as they are defined.
func larger(a, b router.Number) router.Number {
	if !a.Defined() || b > a {
		return b
	}
	return a
}
