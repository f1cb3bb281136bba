package source

import (
	"cmp"
	"context"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Placing is what a placement is asked for with, as flags give it. The evidence of the time that expert work takes is
// a trace, with the counts of its run, or a campaign.
type Placing struct {
	place.Options             // Ranks and Redundant are nil where they are recorded
	Learn         []string    // paths of statistics, which are divided without any to judge on
	Judge         []string    `flag:"judge"`
	From          string      `flag:"from"` // a placement
	Axes          counts.Axes `flag:"axes"`
	Trace         []string    `flag:"trace"`
	Counts        string      `flag:"counts"`
	StepTime
}

// StepTime is the campaign that says what a step takes without a profiler, and the tokens of its steps, as flags
// give them.
type StepTime struct {
	Campaign   string `flag:"campaign"`
	StepTokens uint64 `flag:"step-tokens"`
}

// Check finds tokens that are of no campaign's steps.
func (s *StepTime) Check() error {
	if s.StepTokens > 0 && s.Campaign == "" {
		return usagef("--step-tokens are the tokens of a campaign's steps: add --campaign")
	}
	return nil
}

// Judged learns placements from the statistics and judges them. Errors about the flags wrap ErrUsage.
func (p Placing) Judged(ctx context.Context) (*place.Result, error) {
	if traced := len(p.Trace) > 0; traced && p.Campaign != "" || !traced && p.Counts != "" {
		return nil, usagef("want --trace, with its --counts, or --campaign")
	}
	paths, err := expanded(p.Learn)
	records, wrong := Records(slices.Concat(paths, p.Judge), p.Axes) // none twice: a plan is tested by other counts
	if err = cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	learn, judge := records[:len(paths)], records[len(paths):]
	if err := p.size(records); err != nil {
		return nil, err
	}
	if len(p.Trace) > 0 {
		err = p.fit(ctx, learn[0])
	} else if p.NoTime = router.Warn("no_time", "", "why", place.NoEvidence); p.Campaign != "" {
		err = p.curve(learn[0])
	}
	if err != nil {
		return nil, err
	}
	learned, judged := place.Halves(learn)
	if len(judge) > 0 {
		learned, judged = place.Whole(learn), place.Whole(judge)
	}
	return place.Judge(learned, judged, p.Options)
}

// size finds how many ranks and redundant experts there are.
func (p *Placing) size(records []*counts.Record) error {
	o, first := &p.Options, records[0]
	experts, err := place.Alike(records, o.Shape)
	switch {
	case err != nil:
		return err
	case len(o.Ranks) == 0:
		o.Ranks = []int{first.Ranks}
	case p.From != "" && len(o.Ranks) > 1:
		return usagef("--from: want one --ep with it, have %v", o.Ranks)
	}
	if p.From != "" {
		if o.From, err = ReadPlacement(p.From, o.Ranks[0]); err != nil {
			return err
		}
		o.Ranks = []int{o.From.Ranks}
	}
	if o.Ranks[0] == 0 {
		return usagef("--ep: want the number of ranks, which %s does not say", first.Source)
	}
	if o.Redundant == nil {
		o.Redundant = []int{o.Running(records)}
	}
	if n, err := place.Impossible(experts, o.Redundant, o.Ranks); err != nil {
		return usagef("--redundant %d: %v", n, err)
	}
	return nil
}

// curve predicts time from a campaign that measured it over load, for the tokens in a step of the record where
// none are given.
func (p *Placing) curve(record *counts.Record) error {
	read, err := ReadCampaign(p.Campaign)
	if err != nil {
		return err
	}
	if !read.Curved() {
		return usagef("--campaign has the gain of one arm: give a campaign of several routers, or --trace")
	}
	p.NoTime, p.Dose = router.Warning{}, &place.Dose{Tokens: float64(p.StepTokens), Result: read.Result}
	if p.StepTokens == 0 {
		p.Dose.Tokens = stepTokens(record, p.Shape)
	}
	return nil
}

// fit predicts time from a trace of the run that the record is of unless Counts names others.
func (p *Placing) fit(ctx context.Context, record *counts.Record) error {
	paths, err := RunCaptures(p.Trace, nil)
	if err == nil && p.Counts != "" {
		record, err = ReadCounts(p.Counts, nil)
	}
	if err != nil {
		return err
	}
	t, err := Trace(ctx, paths, trace.Options{Threshold: p.Threshold}, record, p.Shape)
	if err == nil {
		p.Cost, p.NoTime, err = place.FromTrace(t, record)
	}
	if c := p.Cost; c != nil && !slices.Contains(p.Ranks, c.Ranks) {
		p.Cost, p.NoTime = nil, router.Warn("no_time", "", "why", "ranks", "ranks", c.Ranks, "asked", p.Ranks[0])
	}
	return err
}
