package render

import (
	"cmp"
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
	campaign *bench.Campaign
	begun    time.Time
	blocks   int             // measured since then
	warned   map[string]bool // warnings that were shown
}

// NewProgress tells of a campaign that begins now.
func NewProgress(stderr io.Writer, campaign *bench.Campaign) *Progress {
	return &Progress{line: progress.New(stderr), campaign: campaign, begun: time.Now(), warned: make(map[string]bool)}
}

// Event takes one event of the campaign.
func (p *Progress) Event(e bench.Event) {
	if e.Stage == bench.Ended {
		for _, warning := range e.Attempt.Warnings {
			if !p.warned[warning] {
				p.warned[warning] = true
				p.line.Println("warning: " + warning)
			}
		}
	}
	if e.Blocks > 0 {
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
	p.line.Println(text)
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
			return head + ": " + described(e.Attempt.Segments, e.Attempt.DurationNS, metric)
		}
	case bench.Measured:
		last := e.Attempt.Segments[len(e.Attempt.Segments)-1:]
		return fmt.Sprintf("%s, point %s: %s", head, last[0].Point, described(last, last[0].DurationNS, metric))
	case bench.Cleaning:
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
	case l.Arm == "":
		return "all arms"
	case l.Point != "":
		return fmt.Sprintf("pair %d, %s, point %s", l.Pair, l.Arm, l.Point)
	}
	return fmt.Sprintf("pair %d, %s", l.Pair, l.Arm)
}

// described is what the only segment of a launch reported, and how long it took.
func described(segments []bench.Segment, ns int64, metric string) string {
	took := time.Duration(ns).Round(time.Millisecond)
	if len(segments) == 1 {
		if m, ok := segments[0].Result.Metric(cmp.Or(metric, segments[0].Result.Primary)); ok {
			return strings.TrimSpace(quantity.Digits4(m.Value)+" "+m.Unit) + " in " + took.String()
		}
	}
	return fmt.Sprintf("done in %s", took)
}
