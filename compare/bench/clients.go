package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/moebalance/moebalance/compare/bench/launch"
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
