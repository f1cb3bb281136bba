package bench

import (
	"regexp"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
)

// fixedRate finds the rate at which a client is told to send requests.
var fixedRate = regexp.MustCompile(`--?request[-_]rate[ =]["']?([0-9.]*[1-9][0-9.]*)(?:["']|\s|$)`)

// checkRate asks whether a throughput is judged that the client itself fixes.
func (s Spec) checkRate(m gain.Metric) (gain.Check, bool) {
	found := fixedRate.FindStringSubmatch(strings.Join(s.Command.Normal, " "))
	if found == nil || !m.HigherIsBetter || s.Points != nil && in(s.Command.Normal, s.Points.Name) {
		return gain.Check{}, false
	}
	return gain.NewCheck(gain.CheckRate, gain.Warn, "client", "rate", found[1]), true
}
