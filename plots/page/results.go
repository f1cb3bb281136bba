package page

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Campaign is what the page reads of a 'bench' result.
type Campaign struct {
	gain.Result
	Progress Progress `json:"campaign"`
}

// Progress is how far a campaign has come. The zero value is that of one that is
// finished, or that is not known to have more to do.
type Progress struct {
	Folder string `json:"folder"`
	Pairs  int    `json:"pairs"` // of the design
	Looks  []int  `json:"looks"` // pairs after which it may end early; empty where it does not
	Left   int    `json:"left"`  // launches still to be done
}

func (c *Campaign) unfinished() bool { return c.Progress.Left > 0 }

// state says how far an unfinished campaign has come.
func (c *Campaign) state() string {
	of := "of"
	if len(c.Progress.Looks) > 0 {
		of = "of at most"
	}
	return fmt.Sprintf("unfinished, %d %s %s", c.Gain.N, of, quantity.Count(c.Progress.Pairs, "pair"))
}

// Counts is what the page reads of a 'counts' result.
type Counts struct {
	Imbalance []imbalance.SourceRow `json:"imbalance"`
	Warnings  []router.Warning      `json:"warnings"`
	// Load is the recorded load by layer, for a heat map. A result's JSON does
	// not hold it: it comes from the statistics themselves.
	Load map[int]router.Load `json:"-"`
}
