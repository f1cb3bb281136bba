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

// drive runs the measured command of a launch of one arm, a server's client once for each point. Each run of
// several is on disk as soon as it has ended.
func (s *segments) drive(ctx context.Context, run func(context.Context, launch.Run) error) error {
	s.live().Segments, s.live().Orders = nil, []Ordered{{Arm: s.launch.Arm}}
	for i, value := range s.Spec.order(s.launch) {
		r, name := control.Run{Number: i, Arm: string(s.launch.Arm), Point: value, Timed: true}, ""
		if s.Spec.perClient() {
			name = "point-" + value
		}
		seg, err := s.client(ctx, r, name, s.Spec.Design.seed(s.launch.Pair+1), run)
		if err == nil {
			s.live().Segments = append(s.live().Segments, seg)
		}
		if name == "" {
			return err
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", s.Spec.Points.Name, value, err)
		}
		if err := s.save(s.launch, *s.live()); err != nil {
			return err
		}
		s.report(Event{Stage: Measured, Launch: s.Launches[s.launch.Position], Attempt: *s.live()})
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
			name := fmt.Sprintf("run-%03d-%s", r.Number, r.Arm)
			if !r.Timed {
				name += "-untimed"
			}
			seg, err := s.client(ctx, r, name, s.Spec.Design.seed(s.launch.Position*mostRuns+r.Number), run)
			if err == nil {
				s.keep(seg)
			}
			return err
		},
		Block: func(block int) {
			unsaved = s.save(s.launch, *s.live())
			s.report(Event{Stage: Measured, Launch: s.Launches[s.launch.Position], Attempt: *s.live(), Block: block + 1,
				Blocks: len(plan.Blocks)})
		},
	}
	return cmp.Or(s.driver.Drive(ctx, plan), unsaved)
}

// mostRuns bounds the runs of a launch, so that no two have the same seed.
const mostRuns = 1 << 12

// client runs the measured command once, in a folder of that name below the attempt's, and reads its report.
func (s *segments) client(ctx context.Context, r control.Run, name string, seed uint64,
	run func(context.Context, launch.Run) error) (seg Segment, err error) {
	folder := filepath.Join(s.folder, name)
	out := filepath.Join(folder, outName)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return seg, err
	}
	words, filled := s.words, s.Spec.placeholdersOf(s.launch, gain.Arm(r.Arm), out, r.Point, seed)
	if len(s.Spec.Command.Server) > 0 {
		words = filled.fill(s.Spec.Command.Normal)
	}
	began := s.host.Now()
	if err := run(ctx, launch.Run{Folder: folder, Words: words}); err != nil {
		return seg, err
	}
	seg = Segment{Run: r, Folder: name, DurationNS: max(0, int64(s.host.Now().Sub(began)))}
	result, err := s.parse(s.outputOf(folder, filled))
	seg.Result = &result
	return seg, err
}

// keep adds a segment to its attempt, and the order it ran under.
func (s *segments) keep(seg Segment) {
	a := s.live()
	a.Segments = append(a.Segments, seg)
	if n := len(a.Orders); n == 0 || a.Orders[n-1].Sequence != seg.Sequence {
		a.Orders = append(a.Orders, Ordered{Sequence: seg.Sequence, Arm: gain.Arm(seg.Arm), Router: seg.Router})
	}
	if seg.Timed {
		a.Orders[len(a.Orders)-1].Ranks = len(s.driver.Acks())
	}
}
