package page

import (
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
)

// Cache is what the page reads of a 'logits verify' result.
type Cache struct {
	Balance []CacheBalance `json:"balance"`
	Entries []CacheEntry   `json:"entries"`
}

// AtFloor is the number of batch sizes at which experts and ranks are both at
// their floor.
func (c Cache) AtFloor() (n int) {
	for _, b := range c.Balance {
		if b.even() {
			n++
		}
	}
	return n
}

// CacheBalance is the balance of one batch size over all ranks together.
type CacheBalance struct {
	Model             string        `json:"model"`
	TokensPerRank     int           `json:"tokens_per_rank"`
	ExpertMaxOverMean router.Number `json:"expert_max_over_mean"`
	ExpertFloor       router.Number `json:"expert_floor"`
	RankMaxOverMean   router.Number `json:"rank_max_over_mean"`
	RankFloor         router.Number `json:"rank_floor"`
	ActiveExperts     router.Number `json:"active_experts"`
	ActiveIdeal       int           `json:"active_experts_ideal"`
}

// CacheEntry is one file of the cache.
type CacheEntry struct {
	Path   string `json:"path"`
	Status string `json:"status"` // exact, projected, infeasible, or "failed: " and why
}

// Counts is what the page reads of a 'counts' result.
type Counts struct {
	Imbalance []CountsLayer    `json:"imbalance"`
	Warnings  []counts.Warning `json:"warnings"`
	// Load is the recorded load by layer, for a heat map. A result's JSON does
	// not hold it: it comes from the statistics themselves.
	Load map[int]router.Load `json:"-"`
}

// CountsLayer is the balance of one layer of one source.
type CountsLayer struct {
	Source string `json:"source"`
	counts.LayerBalance
}

// even reports that experts and ranks are both known to be at their floor, give
// or take the rounding of a ratio of two integers.
func (b CacheBalance) even() bool {
	at := func(v, floor router.Number) bool { return floor >= 1 && v >= 1 && v <= floor*(1+1e-9) }
	return at(b.ExpertMaxOverMean, b.ExpertFloor) && at(b.RankMaxOverMean, b.RankFloor)
}
