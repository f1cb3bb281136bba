package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// clients are the runs of a server's client at the points that attempt a has not measured
// yet, in the order drawn. Each is on disk as soon as it has ended.
func (r *runner) clients(l Launch, a Attempt, folder string) (runs []launch.Run, err error) {
	for _, value := range r.Spec.order(l) {
		if slices.ContainsFunc(a.Points, func(p PointRun) bool { return p.Value == value }) {
			continue
		}
		at := filepath.Join(folder, "point-"+value)
		out := filepath.Join(at, outName)
		if err := os.MkdirAll(out, 0o755); err != nil {
			return nil, err
		}
		var began time.Time
		runs = append(runs, launch.Run{
			Name: r.Spec.Points.Name + " " + value, Folder: at,
			Words: r.Spec.placeholders(l, out, value).fill(r.Spec.Command.Of(l.Arm)),
			Began: func() { began = r.host.Now() },
			Done: func() error {
				live := &r.Launches[l.Position]
				last := &live.Attempts[a.Number-1]
				p := PointRun{Value: value, Attempt: a.Number, DurationNS: max(0, int64(r.host.Now().Sub(began)))}
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
	if s.Points == nil {
		return p
	}
	if point != "" {
		p.points = []string{"{" + s.Points.Name + "}", point}
	}
	p.points = append(p.points, "{"+points.All+"}", strings.Join(s.order(l), ","))
	return p
}

// checkPointRuns says which launches measured their points on more than one engine.
func (c *Campaign) checkPointRuns() (gain.Check, bool) {
	const name = "one_engine"
	var split []int
	several := false
	for _, l := range c.Launches {
		a, ok := l.Done()
		several = several || ok && len(a.Points) > 0
		if ok && slices.ContainsFunc(a.Points, func(p PointRun) bool { return p.Attempt != a.Number }) {
			split = append(split, l.Position)
		}
	}
	if len(split) > 0 {
		return warning(name, "two engines measured the points of "+quantity.Numbered("launch",
			split)+", because of an interruption: a fresh engine measured the missing points"), several
	}
	return gain.Check{Name: name, Status: gain.Pass, Text: "each launch measured all its points on one engine"}, several
}
