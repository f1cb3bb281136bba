package main

import (
	"io"

	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/cmd/internal/render"
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
	if text := render.Event(e, p.metric); text != "" {
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
