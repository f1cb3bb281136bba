package bench

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/shown"
)

// Command is what one launch starts: the measured command alone, or a server and
// the client that measures it. Words may hold the placeholders {arm}, {launch}
// (the position in the order, from 0), {pair} (from 0), {out} (a fresh
// folder for files of its own), {seed} (another one in each pair, or in each run of a
// client where a launch holds all arms) and the name of Points.
type Command struct {
	Normal []string `json:"normal"` // the measured command

	Server []string `json:"server,omitempty"`             // started first and ended after the measured command
	Ready  string   `json:"ready,omitempty" flag:"ready"` // URL that answers 2xx once the server is ready
}

// engine is the command that starts the experts: the server, where there
// is one. It carries the treatment.
func (c Command) engine() []string {
	if len(c.Server) > 0 {
		return c.Server
	}
	return c.Normal
}

// check reports what is wrong with c.
func (c Command) check(t Treatment) error {
	at, err := url.Parse(c.Ready)
	switch {
	case len(c.Normal) == 0:
		return fmt.Errorf("no command to launch")
	case (len(c.Server) == 0) != (c.Ready == ""):
		return fmt.Errorf("--server and --ready belong together: a server and the URL that answers once it is ready")
	case c.Ready != "" && (err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == ""):
		return fmt.Errorf("--ready %q: want a full URL such as http://localhost:8000/health", shown.Masked(c.Ready))
	}
	for _, word := range slices.Concat(c.Normal, c.Server) {
		for _, name := range t.Names() {
			if strings.Contains(word, name+"=") {
				return fmt.Errorf("the command sets %s itself (%q): remove it, bench sets it per arm", name, word)
			}
		}
	}
	return nil
}

// placeholders give names in braces what stands for them.
type placeholders struct{ *strings.Replacer }

// placeholdersOf gives the placeholders of a run in a launch their values; {out} is its folder.
func (s Spec) placeholdersOf(l Launch, arm gain.Arm, out, point string, seed uint64) placeholders {
	p := []string{"{arm}", string(s.Builds.Called(arm)), "{launch}", fmt.Sprint(l.Position), "{pair}",
		fmt.Sprint(l.Pair), "{out}", out, "{seed}", fmt.Sprint(seed)}
	if s.Points != nil && point != "" {
		p = append(p, "{"+s.Points.Name+"}", point)
	}
	return placeholders{strings.NewReplacer(p...)}
}

// fill replaces the placeholders in words.
func (p placeholders) fill(words []string) []string {
	filled := slices.Clone(words)
	for i, w := range filled {
		filled[i] = p.Replace(w)
	}
	return filled
}
