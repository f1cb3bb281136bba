package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/compare/bench"
)

// benchProgress reports a campaign on stderr: a line per finished launch, and on a
// terminal the number of launches below.
type benchProgress struct {
	line   *progress.Line
	quiet  bool
	metric string          // the one compared; empty is the report's own primary one
	warned map[string]bool // warnings that were shown
}

func newBenchProgress(stderr io.Writer, metric string, quiet bool) *benchProgress {
	return &benchProgress{line: progress.New(stderr, quiet), metric: metric, quiet: quiet, warned: make(map[string]bool)}
}

// event takes one event of the campaign.
func (p *benchProgress) event(e bench.Event) {
	if p.quiet {
		return
	}
	if e.Stage == bench.Ended {
		for _, warning := range e.Attempt.Warnings {
			if !p.warned[warning] {
				p.warned[warning] = true
				p.line.Println("warning: " + warning)
			}
		}
	}
	if text := describeEvent(e, p.metric); text != "" {
		p.line.Println(text)
	}
	p.line.Show("%d of %d launches", e.Done, e.Done+e.Left)
}

// say reports something about the campaign as a whole.
func (p *benchProgress) say(text string) {
	if !p.quiet {
		p.line.Println(text)
	}
}

// describeEvent is the line for an event, "" for those that need none.
func describeEvent(e bench.Event, metric string) string {
	head := fmt.Sprintf("[%d of %d] launch %d, %s", e.Done, e.Done+e.Left, e.Launch.Position, describeLaunch(e.Launch))
	switch e.Stage {
	case bench.Starting:
		if n := len(e.Launch.Attempts); n > 1 {
			last := e.Launch.Attempts[n-2]
			return fmt.Sprintf("%s: attempt %d was %s (%s); trying again", head, last.Number, last.State, last.Error)
		}
	case bench.Ended:
		if e.Attempt.State == bench.Finished { // any other end is told when the launch is tried again, or as the error
			return head + ": " + describeAttempt(e.Attempt, metric)
		}
	case bench.Cooling:
		return fmt.Sprintf("%s: begins in %s", head, e.Text)
	case bench.Looked, bench.Cleaning:
		return e.Text
	}
	return ""
}

func describeLaunch(l bench.Launch) string {
	switch l.Kind {
	case bench.Timed:
		return fmt.Sprintf("pair %d, %s", l.Pair, l.Arm)
	case bench.Floor:
		return fmt.Sprintf("A/A pair %d, %s", l.Pair, l.Arm)
	}
	return fmt.Sprintf("%s, %s", l.Kind, l.Arm)
}

func describeAttempt(a bench.Attempt, metric string) string {
	took := time.Duration(a.DurationNS).Round(time.Millisecond)
	if a.Result != nil {
		if metric == "" {
			metric = a.Result.Primary
		}
		if m, ok := a.Result.Metric(metric); ok {
			return strings.TrimSpace(fmt.Sprintf("%.6g %s", m.Value, m.Unit)) + " in " + took.String()
		}
	}
	return fmt.Sprintf("done in %s", took)
}
