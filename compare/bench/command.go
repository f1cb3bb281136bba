package bench

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/shown"
)

// Command is what one launch starts: the measured command alone, or a server and
// the client that measures it. Words may hold the placeholders {arm}, {launch}
// (the position in the order, from 0), {pair} (from 0, −1 outside pairs), {out} (a fresh
// folder for files of its own), {seed} (another one in each pair, or in each run of a
// client where a launch holds all arms) and those of Points.
type Command struct {
	Normal []string `json:"normal"` // the measured command

	Server       []string      `json:"server,omitempty"` // started first and ended after the measured command
	Ready        string        `json:"ready,omitempty"`  // URL that answers 2xx once the server is ready
	ReadyTimeout time.Duration `json:"ready_timeout_ns,omitempty"`
}

// engine is the command that starts the experts: the server, where there
// is one. It carries the treatment and is the one to profile.
func (c Command) engine() []string {
	if len(c.Server) > 0 {
		return c.Server
	}
	return c.Normal
}

// check reports what is wrong with c. The server may run already.
func (c Command) check(t Treatment, runs bool) error {
	if len(c.Normal) == 0 {
		return fmt.Errorf("no command to launch")
	}
	if (len(c.Server) == 0) != (c.Ready == "") && !runs {
		return fmt.Errorf("--server and --ready belong together: a server and the URL that answers once it is ready")
	}
	if c.Ready != "" {
		if at, err := url.Parse(c.Ready); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
			return fmt.Errorf("--ready %q: want a full URL such as http://localhost:8000/health", shown.Masked(c.Ready))
		}
	}
	for _, words := range [][]string{c.Normal, c.Server} {
		for _, word := range words {
			for _, name := range t.Names() {
				if strings.Contains(word, name+"=") {
					return fmt.Errorf("the command sets %s itself (%q): remove it, bench sets it per arm", name, word)
				}
			}
		}
	}
	return nil
}

// placeholders are what the placeholders of one launch stand for.
type placeholders struct {
	launch Launch
	out    string
	arm    gain.Arm // as the spec calls it
	seed   uint64
	points []string // name and value, and name and value, …
}

// fill replaces the placeholders in words.
func (p placeholders) fill(words []string) []string {
	r := strings.NewReplacer(append(p.points,
		"{arm}", string(p.arm),
		"{launch}", fmt.Sprint(p.launch.Position),
		"{pair}", fmt.Sprint(p.launch.Pair),
		"{out}", p.out,
		"{seed}", fmt.Sprint(p.seed),
	)...)
	filled := slices.Clone(words)
	for i, w := range filled {
		filled[i] = r.Replace(w)
	}
	return filled
}
