package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
)

// segments leads an attempt through the runs of the measured command.
type segments struct {
	*runner
	launch Launch
	number int // of the attempt
	folder string
	words  []string // of the engine

	driver *control.Driver // which leads a launch that holds all arms
}

// live is the attempt as it is written down.
func (s *segments) live() *Attempt { return &s.Launches[s.launch.Position].Attempts[s.number-1] }

// drive runs the measured command of a launch of one arm, a server's client once for each point.
func (s *segments) drive(ctx context.Context, run func(context.Context, launch.Run) error) error {
	for i, value := range s.Spec.order(s.launch) {
		r, name := control.Run{Number: i, Arm: string(s.launch.Arm), Point: value, Timed: true}, ""
		if s.Spec.perClient() {
			name = "point-" + value
		}
		err := s.client(ctx, r, name, s.Spec.Design.seed(s.launch.Pair+1), run)
		switch {
		case name == "":
			return err
		case err != nil:
			return fmt.Errorf("%s %s: %w", s.Spec.Points.Name, value, err)
		}
		if err := s.measured("point " + value); err != nil {
			return err
		}
	}
	return nil
}

// lead leads a launch that holds all arms through its plan; run runs a client.
func (s *segments) lead(ctx context.Context, run func(context.Context, launch.Run) error) error {
	var unsaved error
	plan := s.Spec.planOf(s.launch)
	s.driver = &control.Driver{
		Channel: control.Folder(filepath.Join(s.folder, controlFolder)), Ranks: s.Spec.Ranks, Now: s.host.Now,
		Sleep: s.host.Sleep,
		Run: func(ctx context.Context, r control.Run) error {
			name := fmt.Sprintf("run-%03d", r.Number)
			if !r.Timed {
				name += "-untimed"
			}
			return s.client(ctx, r, name, s.Spec.Design.seed(s.launch.Position*mostRuns+r.Number), run)
		},
		Block: func(block int) {
			unsaved = cmp.Or(unsaved, s.measured(fmt.Sprintf("block %d of %d", block+1, len(plan.Blocks))))
		},
	}
	return cmp.Or(s.driver.Drive(ctx, plan), unsaved)
}

// measured writes down, and tells, what a launch that goes on has measured.
func (s *segments) measured(what string) error {
	err := s.store.save(s.launch.Position, *s.live())
	s.report(Event{Stage: Measured, Launch: s.Launches[s.launch.Position], Attempt: *s.live(), Text: what})
	return err
}

// mostRuns bounds the runs of a launch, so that no two have the same seed.
const mostRuns = 1 << 12

// client runs the measured command once, in a folder of that name below the attempt's, and reads its report. The
// segment is added to the attempt, and the order it ran under.
func (s *segments) client(ctx context.Context, r control.Run, name string, seed uint64,
	run func(context.Context, launch.Run) error) error {
	folder := filepath.Join(s.folder, name)
	out := filepath.Join(folder, outName)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	words, filled := s.words, s.Spec.placeholdersOf(s.launch, gain.Arm(r.Arm), out, r.Point, seed)
	if len(s.Spec.Command.Server) > 0 {
		words = filled.fill(s.Spec.Command.Normal)
	}
	began := s.host.Now()
	if err := run(ctx, launch.Run{Folder: folder, Words: words}); err != nil {
		return err
	}
	took := max(0, int64(s.host.Now().Sub(began)))
	result, err := s.parse(s.outputOf(folder, filled))
	if err != nil {
		return err
	}
	a := s.live()
	a.Segments = append(a.Segments, Segment{Run: r, Folder: name, DurationNS: took, Result: &result})
	if n := len(a.Orders); n == 0 || a.Orders[n-1].Sequence != r.Sequence {
		a.Orders = append(a.Orders, Ordered{Sequence: r.Sequence, Arm: gain.Arm(r.Arm), Router: r.Router})
	}
	if r.Timed && s.driver != nil {
		a.Orders[len(a.Orders)-1].Ranks = len(s.driver.Acks)
	}
	return nil
}
