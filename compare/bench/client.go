package bench

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
)

// checkServer asks whether the client measures the server that was started: by the address
// that it names, which --ready or the server's own words must name, too.
func (c *Campaign) checkServer() (gain.Check, bool) {
	cmd := c.Spec.Command
	if len(cmd.Server) == 0 {
		return gain.Check{}, false
	}
	ready, silent := launch.Address(cmd.Ready), false
	for _, arm := range c.Spec.arms() {
		servers := launch.ServersOf(cmd.Of(arm))
		silent = silent || len(servers) == 0
		for _, at := range servers {
			host, port, _ := net.SplitHostPort(at)
			own := regexp.MustCompile(`(^|\D)` + port + `(\D|$)`).MatchString(strings.Join(cmd.Server, " "))
			if at != ready && (host != "localhost" || !own) && !slices.Contains(c.Spec.Accepted, at) {
				return warning(gain.CheckServer,
					fmt.Sprintf("the client measures %s, but the server that was started answers at %s (--ready): name the same in both, or accept it by --accept-difference %s", at, ready, at)), true
			}
		}
	}
	if silent {
		return gain.Check{Name: gain.CheckServer, Status: gain.Unknown,
			Text: "the client names no server, so nothing shows that it measured the one at " + ready}, true
	}
	return gain.Check{Name: gain.CheckServer, Status: gain.Pass, Text: "the client names the server that was started"},
		true
}
