package bench

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
)

// Options of clients that name the server: by its URL, or by host and port.
var (
	serverURL = regexp.MustCompile(
		`(?:^|\s)(?:--?(?:base|api|server|endpoint)?[-_]?url|--api[-_]base|--server|-u)[=\s]+["']?([^\s"']+)`)
	serverHost = regexp.MustCompile(`(?:^|\s)--host(?:name)?[=\s]+["']?([^\s"']+)`)
	serverPort = regexp.MustCompile(`(?:^|\s)--port[=\s]+["']?(\d+)`)
)

// serversOf are the servers that a client's words name, as host:port; this machine is
// localhost by any name.
func serversOf(words []string) (servers []string) {
	text := strings.Join(words, " ")
	for _, m := range serverURL.FindAllStringSubmatch(text, -1) {
		if at := address(m[1]); at != "" {
			servers = append(servers, at)
		}
	}
	if port := serverPort.FindStringSubmatch(text); port != nil && len(servers) == 0 {
		host := "localhost"
		if m := serverHost.FindStringSubmatch(text); m != nil {
			host = m[1]
		}
		servers = append(servers, address(net.JoinHostPort(strings.Trim(host, "[]"), port[1])))
	}
	return servers
}

// address is host:port of a URL, or of that without a scheme; empty for another text.
func address(text string) string {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	host, name := u.Hostname(), ""
	name, _ = os.Hostname()
	if slices.Contains([]string{"127.0.0.1", "0.0.0.0", "::1", "::", name}, host) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// checkServer asks whether the client measures the server that was started: by the address
// that it names, which --ready or the server's own words must name, too.
func (c *Campaign) checkServer() (gain.Check, bool) {
	cmd := c.Spec.Command
	if len(cmd.Server) == 0 {
		return gain.Check{}, false
	}
	ready, silent := address(cmd.Ready), false
	for _, arm := range c.Spec.arms() {
		servers := serversOf(cmd.Of(arm))
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
