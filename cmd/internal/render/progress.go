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
	switch attempts := e.Launch.Attempts; {
	case e.Stage == bench.Starting && len(attempts) > 1:
		last := attempts[len(attempts)-2]
		p.launch(e, fmt.Sprintf("attempt %d %s (%s); trying again", last.Number, last.State, last.Error))
	case e.Stage == bench.Ended:
		for _, warning := range e.Attempt.Warnings {
			if !slices.Contains(p.warned, warning) {
				p.warned = append(p.warned, warning)
				p.Println("warning: " + warning)
			}
		}
		if e.Attempt.State == bench.Finished { // other ends are reported with the next attempt or as the error
			took := time.Duration(e.Attempt.DurationNS)
			text := "done" + p.measured(e.Attempt.Segments) + " in " + took.Round(time.Millisecond).String()
			if left := time.Duration(e.Left) * took; left > time.Minute {
				text += fmt.Sprintf(", about %.0f min left", left.Minutes())
			}
			p.launch(e, text)
		}
	case e.Stage == bench.Measured:
		p.launch(e, e.Text)
	case e.Stage == bench.Cleaning:
		p.Println(e.Text)
	}
	p.Show("%d of %d launches", e.Done, e.Done+e.Left)
}

// launch writes a line about the launch of an event.
func (p *Progress) launch(e bench.Event, text string) {
	arm := ""
	if e.Launch.Arm != "" {
		arm = fmt.Sprintf(", pair %d, %s", e.Launch.Pair, e.Launch.Arm)
	}
	p.Println(fmt.Sprintf("[%d of %d] launch %d%s: %s", e.Done, e.Done+e.Left, e.Launch.Position, arm, text))
}

// measured is the value that the only segment of a launch reported: ": 1234 tok/s".
func (p *Progress) measured(segments []bench.Segment) string {
	if len(segments) != 1 {
		return ""
	}
	m, _ := segments[0].Result.Metric(cmp.Or(p.metric, segments[0].Result.Primary))
	return strings.TrimRight(": "+quantity.Digits4(m.Value)+" "+m.Unit, " ")
}
