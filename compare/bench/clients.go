package bench

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/gain"
)

// clients are the runs of a server's client at the points of an attempt, in the order drawn. Each is
// on disk as soon as it has ended.
func (r *runner) clients(l Launch, a Attempt, folder string) (runs []launch.Run, err error) {
	for _, value := range r.Spec.order(l) {
		at := filepath.Join(folder, "point-"+value)
		out := filepath.Join(at, outName)
		if err := os.MkdirAll(out, 0o755); err != nil {
			return nil, err
		}
		var began time.Time
		runs = append(runs, launch.Run{
			Name: r.Spec.Points.Name + " " + value, Folder: at,
			Words: r.Spec.placeholders(l, out, value).fill(r.Spec.Command.Normal),
			Began: func() { began = r.host.Now() },
			Done: func() error {
				live := &r.Launches[l.Position]
				last := &live.Attempts[a.Number-1]
				p := PointRun{Value: value, DurationNS: max(0, int64(r.host.Now().Sub(began)))}
				result, err := r.parse(r.outputOf(l, at, value))
				if err != nil {
					return fmt.Errorf("%w: %w", errUnusable, err)
				}
				p.Result = &result
				last.Points = append(last.Points, p)
				if err := r.save(*live, *last); err != nil {
					return err
				}
				r.report(Event{Stage: Measured, Launch: *live, Attempt: *last})
				return nil
			},
		})
	}
	return runs, nil
}

// placeholders are those of a launch at one of its points, empty where it has none.
func (s Spec) placeholders(l Launch, out, point string) placeholders {
	p := placeholders{launch: l, out: out, arm: s.Builds.Called(l.Arm), seed: s.Design.seed(l.Pair + 1)}
	if s.Points != nil && point != "" {
		p.points = []string{"{" + s.Points.Name + "}", point}
	}
	return p
}

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
	ready, servers := launch.Address(cmd.Ready), launch.ServersOf(cmd.Normal)
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

// in reports whether a word has a placeholder of that name.
func in(words []string, name string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{"+name+"}") })
}

// checkPoints reports points that the commands do not use.
func (s Spec) checkPoints() error {
	p := s.Points
	if p == nil {
		return nil
	}
	if !in(s.Command.Normal, p.Name) && s.perLaunch() == nil {
		return fmt.Errorf("--points %s: the command has no {%[1]s}: write it where the value goes", p.Name)
	}
	return nil
}

// perLaunch are the points that need launches of their own, nil where there are none.
func (s Spec) perLaunch() []string {
	if s.Points == nil {
		return nil
	}
	words := slices.Clone(s.Command.engine())
	for _, a := range s.Arms {
		words = append(words, a.Flags...)
	}
	if !in(words, s.Points.Name) {
		return nil
	}
	return s.Points.Values
}

// perClient reports whether each launch of a server has a run of its client per point.
func (s Spec) perClient() bool {
	return s.Points != nil && s.perLaunch() == nil && in(s.Command.Normal,
		s.Points.Name)
}

// order are the points of a launch that has several, in the order they are measured.
func (s Spec) order(l Launch) []string {
	if s.Points == nil || l.Point != "" {
		return nil
	}
	return points.Drawn(s.Design.Seed, l.Pair, s.Points.Values)
}

// PointRun is what one launch measured at one of its points.
type PointRun struct {
	Value      string          `json:"value"`
	DurationNS int64           `json:"duration_ns"`
	Result     *metrics.Result `json:"result"`
}

// pointAttempts are an attempt once for each of its points, with the result at that; itself where
// it has none.
func (a Attempt) pointAttempts() []Attempt {
	var attempts []Attempt
	for _, s := range a.Segments {
		if s.Counts {
			view := a
			view.Result, view.DurationNS = s.Result, s.DurationNS
			attempts = append(attempts, view)
		}
	}
	if len(a.Points)+len(attempts) == 0 {
		return []Attempt{a}
	}
	for _, p := range a.Points {
		view := a
		view.Result, view.DurationNS = p.Result, p.DurationNS
		attempts = append(attempts, view)
	}
	return attempts
}
