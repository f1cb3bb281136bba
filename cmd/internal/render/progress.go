package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/router/quantity"
)

// Progress reports a campaign on stderr: a line for each block or launch that is measured, and on a
// terminal the number of launches below.
type Progress struct {
	*progress.Line
	metric string   // the one compared, or empty for the primary one of the report
	warned []string // warnings that were shown
}

// NewProgress tells of a campaign that begins now.
func NewProgress(stderr io.Writer, campaign *bench.Campaign) *Progress {
	return &Progress{Line: progress.New(stderr), metric: campaign.Spec.Metric}
}

// Event takes one event of the campaign.
func (p *Progress) Event(e bench.Event) {
	attempts := e.Launch.Attempts
	switch n := len(attempts); {
	case e.Stage == bench.Starting && n > 1:
		last := attempts[n-2]
		p.launch(e, fmt.Sprintf("attempt %d %s (%s); trying again", last.Number, last.State, last.Error))
	case e.Stage == bench.Ended:
		for _, warning := range e.Attempt.Warnings {
			if !slices.Contains(p.warned, warning) {
				p.warned = append(p.warned, warning)
				p.Println("warning: " + warning)
			}
		}
		if e.Attempt.State == bench.Finished { // other ends are reported with the next attempt or as the error
			p.launch(e, p.measured(e.Attempt.Segments, e.Attempt.DurationNS))
		}
	case e.Stage == bench.Measured && e.Blocks > 0:
		p.launch(e, fmt.Sprintf("block %d of %d", e.Block, e.Blocks))
	case e.Stage == bench.Measured:
		last := e.Attempt.Segments[len(e.Attempt.Segments)-1:]
		p.launch(e, "point "+last[0].Point+": "+p.measured(last, last[0].DurationNS))
	case e.Stage == bench.Cleaning:
		p.Println(e.Text)
	}
	p.Show("%d of %d launches", e.Done, e.Done+e.Left)
}

// launch writes a line about the launch of an event.
func (p *Progress) launch(e bench.Event, text string) {
	words := []string{fmt.Sprintf("[%d of %d] launch %d", e.Done, e.Done+e.Left, e.Launch.Position)}
	if e.Launch.Arm != "" {
		words = append(words, fmt.Sprintf("pair %d", e.Launch.Pair), string(e.Launch.Arm))
	}
	if e.Launch.Point != "" {
		words = append(words, "point "+e.Launch.Point)
	}
	p.Println(strings.Join(words, ", ") + ": " + text)
}

// measured is the value that the only segment of a launch reported, and how long it took.
func (p *Progress) measured(segments []bench.Segment, ns int64) string {
	took := time.Duration(ns).Round(time.Millisecond).String()
	if len(segments) == 1 {
		if m, ok := segments[0].Result.Metric(cmp.Or(p.metric, segments[0].Result.Primary)); ok {
			return strings.TrimSpace(quantity.Digits4(m.Value)+" "+m.Unit) + " in " + took
		}
	}
	return "done in " + took
}
