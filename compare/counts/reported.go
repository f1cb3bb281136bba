package counts

import "github.com/moebalance/moebalance/router"

// Reported is one line in which an engine states its own balance.
type Reported struct {
	Step         int64         `json:"step"`         // −1 where the line does not say
	Balancedness router.Number `json:"balancedness"` // mean/max over ranks
	MaxOverMean  router.Number `json:"max_over_mean"`
}
