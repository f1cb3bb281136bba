package bench

import (
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
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

// checkServer asks whether the client measures the server that was started: by the address
// that it names, which --ready or the server's own words must name, too.
func (c *Campaign) checkServer() (gain.Check, bool) {
	cmd := c.Spec.Command
	if len(cmd.Server) == 0 {
		return gain.Check{}, false
	}
	ready := launch.Address(cmd.Ready)
	servers := launch.ServersOf(cmd.Normal, ready)
	for _, at := range servers {
		host, port, _ := net.SplitHostPort(at)
		own := regexp.MustCompile(`(^|\D)` + port + `(\D|$)`).MatchString(strings.Join(cmd.Server, " "))
		if at != ready && (host != "localhost" || !own) && !slices.Contains(c.Spec.Accepted, at) {
			return gain.NewCheck(gain.CheckServer, gain.Warn, "other", "at", at, "ready", ready), true
		}
	}
	if len(servers) == 0 {
		return gain.NewCheck(gain.CheckServer, gain.Unknown, "unnamed", "ready", ready), true
	}
	return gain.NewCheck(gain.CheckServer, gain.Pass, "same"), true
}
