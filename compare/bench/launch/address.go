package launch

import (
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Options of clients that name the server: by its URL, or by host and port.
var (
	serverURL = regexp.MustCompile(
		`(?:^|\s)(?:--?(?:base|api|server|endpoint)?[-_]?url|--api[-_]base|--server|--target|-u)[=\s]+["']?([^\s"']+)`)
	serverHost = regexp.MustCompile(`(?:^|\s)--host(?:name)?[=\s]+["']?([^\s"']+)`)
	serverPort = regexp.MustCompile(`(?:^|\s)--port[=\s]+["']?(\d+)`)
	anyURL     = regexp.MustCompile(`https?://[^\s"']+`)
)

// ServersOf are the servers that a client's words name, as host:port; this machine is
// localhost by any name. The one that is wanted may be a word of its own, where no URL
// names another: that may be the server as well as a dataset's.
func ServersOf(words []string, wanted string) (servers []string) {
	text := strings.Join(words, " ")
	for _, m := range serverURL.FindAllStringSubmatch(text, -1) {
		if at := Address(m[1]); at != "" {
			servers = append(servers, at)
		}
	}
	if port := serverPort.FindStringSubmatch(text); port != nil && len(servers) == 0 {
		host := "localhost"
		if m := serverHost.FindStringSubmatch(text); m != nil {
			host = m[1]
		}
		servers = append(servers, Address(net.JoinHostPort(strings.Trim(host, "[]"), port[1])))
	}
	other := func(address string) bool { return Address(address) != wanted }
	if len(servers) > 0 || slices.ContainsFunc(anyURL.FindAllString(text, -1), other) {
		return servers
	}
	for i, word := range words {
		if strings.Contains(word, "://") && !other(word) && (i == 0 || !strings.HasPrefix(words[i-1], "-")) {
			return []string{wanted}
		}
	}
	return nil
}

// Address is host:port of a URL, or of that without a scheme; empty for another text.
func Address(text string) string {
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
