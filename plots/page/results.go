package page

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
)

func unfinished(c *source.Campaign) bool { return c.Campaign.Left > 0 }

// state says how far an unfinished campaign has come.
func state(c *source.Campaign) string {
	of := "of"
	if len(c.Campaign.Looks) > 0 {
		of = "of at most"
	}
	return fmt.Sprintf("unfinished, %d %s %s", c.Gain.N, of, quantity.Count(c.Campaign.Pairs, "pair"))
}
