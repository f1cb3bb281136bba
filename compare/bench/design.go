package bench

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/shown"
)

// mostPairs bounds a design: more is a mistake in a flag.
const mostPairs = 100_000

// Design is how many launches there are and in what order. Pairs lie in blocks of two, normal-perfect
// then perfect-normal or the reverse, each block drawn at random: over an even number of pairs each arm
// is first equally often, and a linear drift over the session cancels within every block.
type Design struct {
	// Launches that hold all arms, each in so many Blocks of segments; 0: one arm a launch,
	// in Pairs.
	Launches int `json:"launches,omitempty"`
	Blocks   int `json:"blocks,omitempty"`

	Pairs        int    `json:"pairs"`         // timed pairs; with UntilDecided, the cap
	WarmUps      int    `json:"warm_ups"`      // launches of each arm before the first pair
	Profiled     bool   `json:"profiled"`      // one profiled pair after the last
	Seed         uint64 `json:"seed"`          // of the order
	UntilDecided bool   `json:"until_decided"` // look at the pairs of Looks and stop when decided
}

// Within reports whether each launch holds all arms.
func (d Design) Within() bool { return d.Launches > 0 }

// Check reports what is wrong with d.
func (d Design) Check() error {
	switch {
	case d.Within() && (d.Launches > 1000 || d.Blocks < 1 || d.Blocks > 1000):
		return fmt.Errorf("%d launches of %d blocks: want 1 to 1000 of both", d.Launches, d.Blocks)
	case d.Within() && (d.UntilDecided || d.WarmUps > 0):
		return fmt.Errorf("--until-decided and --warm-up are for launches of one arm: add --pairs, or remove them")
	case d.Within():
		return nil
	case min(d.Pairs-1, d.WarmUps) < 0 || max(d.Pairs, d.WarmUps) > mostPairs:
		return fmt.Errorf("%d pairs and %d warm-up launches: want 1 pair or more, and at most %d of each", d.Pairs,
			d.WarmUps, mostPairs)
	}
	return nil
}

// plan is the order of launches of the arms, the same for the same design. Each pair holds
// all arms one after another. Points that have launches of their own follow each other within a pair, in an order drawn
// for each. Launches have no attempts yet.
func (d Design) plan(arms []gain.Arm, values []string) []Launch {
	if len(values) == 0 {
		values = []string{""}
	}
	last := values[len(values)-1]
	var plan []Launch
	add := func(kind Kind, pair, place int, arm gain.Arm, point string) {
		plan = append(plan, Launch{Position: len(plan), Kind: kind, Arm: arm, Pair: pair, Place: place, Point: point})
	}
	if d.Within() {
		for i := range d.Launches {
			add(Timed, i, 0, "", "")
		}
		if d.Profiled {
			add(Profiled, d.Launches, 0, "", "")
		}
		return plan
	}
	for i := range len(arms) * d.WarmUps {
		add(WarmUp, -1, i%len(arms), arms[i%len(arms)], last)
	}
	for i, order := range control.Pairs(arms, d.Pairs, d.Seed) {
		for _, point := range points.Drawn(d.Seed, i, values) {
			for place, arm := range order {
				add(Timed, i, place, arm, point)
			}
		}
	}
	if d.Profiled {
		add(Profiled, 0, 0, gain.Normal, last)
		add(Profiled, 0, 1, gain.Perfect, last)
	}
	return plan
}

// seed is the n-th of the seeds that runs of a client are given, all different and small
// enough for any client.
func (d Design) seed(n int) uint64 { return d.Seed%(1<<24) + uint64(n) }

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
