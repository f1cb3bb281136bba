package diff

import (
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// BalanceChange is the imbalance that each side measured for itself, where both
// did over as many ranks or experts: max/mean of time or load over ranks or experts, see imbalance.Row.
type BalanceChange struct {
	Layer    router.OptInt `json:"layer"`
	Level    string        `json:"level"`
	Quantity string        `json:"quantity"`
	Normal   router.Number `json:"normal_max_over_mean"`
	Perfect  router.Number `json:"perfect_max_over_mean"`
}

// balanceChanges joins the imbalance that both sides measured over equally many
// parts: max/mean of 2 ranks and of 4 are not the same quantity.
func balanceChanges(normal, perfect *nsys.Trace) []BalanceChange {
	type key struct {
		layer           router.OptInt
		parts           int
		level, quantity string
	}
	keyOf := func(s imbalance.Row) key { return key{s.Layer, s.Parts, s.Level, s.Quantity} }
	other := map[key]imbalance.Row{}
	for _, s := range perfect.Imbalance {
		other[keyOf(s)] = s
	}
	rows := []BalanceChange{}
	for _, s := range normal.Imbalance {
		if o, ok := other[keyOf(s)]; ok {
			rows = append(rows, BalanceChange{s.Layer, s.Level, s.Quantity, s.MaxOverMean, o.MaxOverMean})
		}
	}
	return rows
}
