package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/moebalance/moebalance/compare/bench"
)

// benchProgress tells on stderr how a campaign goes: a line for each launch that
// has ended, and on a terminal a bar below the lines.
type benchProgress struct {
	w      io.Writer
	quiet  bool
	metric string          // the one compared; empty is the report's own primary one
	told   map[string]bool // warnings that were shown
	bars   *mpb.Progress   // nil unless stderr is a terminal
	bar    *mpb.Bar
}

func newBenchProgress(stderr io.Writer, metric string, quiet bool) *benchProgress {
	p := &benchProgress{w: stderr, metric: metric, quiet: quiet, told: make(map[string]bool)}
	if !quiet && onTerminal(stderr) {
		p.bars = mpb.New(mpb.WithOutput(stderr), mpb.WithWidth(40),
			mpb.WithRefreshRate(time.Second)) // seldom: the launches are being measured
		p.w = p.bars
	}
	return p
}

// event takes one event of the campaign.
func (p *benchProgress) event(e bench.Event) {
	if p.quiet {
		return
	}
	if p.bars != nil {
		if p.bar == nil {
			p.bar = p.bars.AddBar(0, mpb.PrependDecorators(decor.CountersNoUnit("%d of %d launches")),
				mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_MMSS)))
		}
		p.bar.SetTotal(int64(e.Done+e.Left), false)
		p.bar.SetCurrent(int64(e.Done))
	}
	if e.Stage == bench.Ended {
		for _, warning := range e.Attempt.Warnings {
			if !p.told[warning] {
				p.told[warning] = true
				fmt.Fprintln(p.w, "warning: "+warning)
			}
		}
	}
	if line := describeEvent(e, p.metric); line != "" {
		fmt.Fprintln(p.w, line)
	}
}

// say tells something about the campaign as a whole.
func (p *benchProgress) say(line string) {
	if !p.quiet {
		fmt.Fprintln(p.w, line)
	}
}

func (p *benchProgress) close() {
	if p.bars == nil {
		return
	}
	if p.bar != nil {
		p.bar.Abort(true)
	}
	p.bars.Wait()
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
