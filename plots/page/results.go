package page

import (
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
)

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
