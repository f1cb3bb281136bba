package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// Progress reports a campaign on stderr: a line per finished launch, and on a
// terminal the number of launches below.
type Progress struct {
	line     *progress.Line
	quiet    bool
	campaign *bench.Campaign
	begun    time.Time
	blocks   int             // measured since then
	warned   map[string]bool // warnings that were shown
}

// NewProgress tells of a campaign that begins now, and nothing where quiet is set.
func NewProgress(stderr io.Writer, campaign *bench.Campaign, quiet bool) *Progress {
	return &Progress{line: progress.New(stderr, quiet), campaign: campaign, quiet: quiet, begun: time.Now(),
		warned: make(map[string]bool)}
}

// Event takes one event of the campaign.
func (p *Progress) Event(e bench.Event) {
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
	if e.Blocks > 0 && e.Launch.Kind == bench.Timed {
		p.blocks++
		d := p.campaign.Spec.Design
		left := e.Blocks - e.Block + (e.Left-1)*d.Blocks
		judged := gain.Judge(bench.Recorded(p.campaign))
		p.line.Println(soFar(e, judged, d.Launches,
			time.Since(p.begun)/time.Duration(p.blocks)*time.Duration(left)))
	} else if text := event(e, p.campaign.Spec.Metric); text != "" {
		p.line.Println(text)
	}
	p.line.Show(float64(e.Done)/float64(max(1, e.Done+e.Left)), "%d of %d launches", e.Done, e.Done+e.Left)
}

// Say reports something about the campaign as a whole.
func (p *Progress) Say(text string) {
	if !p.quiet {
		p.line.Println(text)
	}
}

// Clear takes the line of the terminal away.
func (p *Progress) Clear() { p.line.Clear() }

// event is the line for an event of a campaign, empty for most of them. metric is the
// one compared; empty means the primary one of the report.
func event(e bench.Event, metric string) string {
	head := fmt.Sprintf("[%d of %d] launch %d, %s", e.Done, e.Done+e.Left, e.Launch.Position, describeLaunch(e.Launch))
	switch e.Stage {
	case bench.Starting:
		if n := len(e.Launch.Attempts); n > 1 {
			last := e.Launch.Attempts[n-2]
			return fmt.Sprintf("%s: attempt %d %s (%s); trying again", head, last.Number, last.State, last.Error)
		}
	case bench.Ended:
		if e.Attempt.State == bench.Finished { // other ends are reported with the next attempt or as the error
			return head + ": " + describeAttempt(e.Attempt, metric)
		}
	case bench.Measured:
		if len(e.Attempt.Points) == 0 {
			return "" // a block of a launch that is profiled
		}
		p := e.Attempt.Points[len(e.Attempt.Points)-1]
		return fmt.Sprintf("%s, point %s: %s", head, p.Value,
			describeAttempt(bench.Attempt{Result: p.Result, DurationNS: p.DurationNS}, metric))
	case bench.Cooling:
		return fmt.Sprintf("%s: begins in %s", head, e.Text)
	case bench.Cleaning, bench.Held:
		return e.Text
	}
	return ""
}

// soFar is the line for a block that was measured: the estimate with its interval, and the
// time that the rest takes at the speed so far.
func soFar(e bench.Event, r gain.Result, launches int, left time.Duration) string {
	g, place := r.Gain, answer.AtPoint(r)
	text := fmt.Sprintf("[%d of %d] launch %d, block %d of %d: ", e.Done, launches, e.Launch.Position, e.Block, e.Blocks)
	switch {
	case !g.Estimate.Defined():
		return text + "no gain yet"
	case g.Low.Defined():
		text += fmt.Sprintf("gain so far %s%s, %s to %s", quantity.Change(g.Estimate), place,
			quantity.Change(g.Low), quantity.Change(g.High))
	default:
		text += fmt.Sprintf("gain so far %s%s, no interval yet", quantity.Change(g.Estimate), place)
	}
	if left <= 0 {
		return text
	}
	return fmt.Sprintf("%s, %d:%02d left", text, int(left.Minutes()), int(left.Seconds())%60)
}

func describeLaunch(l bench.Launch) string {
	switch {
	case l.Arm == "" && l.Kind == bench.Timed:
		return "all arms"
	case l.Kind == bench.Timed && l.Point != "":
		return fmt.Sprintf("pair %d, %s, point %s", l.Pair, l.Arm, l.Point)
	case l.Kind == bench.Timed:
		return fmt.Sprintf("pair %d, %s", l.Pair, l.Arm)
	}
	return strings.TrimSuffix(fmt.Sprintf("%s, %s", l.Kind, l.Arm), ", ")
}

func describeAttempt(a bench.Attempt, metric string) string {
	took := time.Duration(a.DurationNS).Round(time.Millisecond)
	if a.Result != nil {
		if metric == "" {
			metric = a.Result.Primary
		}
		if m, ok := a.Result.Metric(metric); ok {
			return strings.TrimSpace(quantity.Digits4(m.Value)+" "+m.Unit) + " in " + took.String()
		}
	}
	return fmt.Sprintf("done in %s", took)
}
