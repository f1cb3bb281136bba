package source

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Placing is what a placement is asked for with, as flags give it.
type Placing struct {
	place.Options             // Ranks and Redundant are nil where they are recorded
	Learn         []string    // paths of statistics, which are divided without any to judge on
	Judge         []string    `flag:"judge"`
	From          string      `flag:"from"` // a placement
	Axes          counts.Axes `flag:"axes"`
	Timing
}

// Timing is the evidence of the time that expert work takes, as flags give it.
type Timing struct {
	Trace  []string `flag:"trace"`
	Counts string   `flag:"counts"`
	StepTime
}

// StepTime is the campaign that says what a step takes without a profiler, and the tokens of its steps, as flags
// give them.
type StepTime struct {
	Campaign   string `flag:"campaign"`
	StepTokens int    `flag:"step-tokens"`
}

// Read reads the campaign.
func (s *StepTime) Read() (Campaign, error) {
	c, err := ReadCampaign(s.Campaign)
	if err != nil {
		err = fmt.Errorf("--campaign: %w", err)
	}
	return c, err
}

// Check finds tokens that are of no step.
func (s *StepTime) Check() error {
	switch {
	case s.StepTokens < 0:
		return usagef("--step-tokens: want at least 1 token, have %d", s.StepTokens)
	case s.StepTokens > 0 && s.Campaign == "":
		return usagef("--step-tokens are the tokens of a campaign's steps: add --campaign")
	}
	return nil
}

// Check finds flags that do not go together.
func (o *Timing) Check() error {
	switch {
	case len(o.Trace) > 0 && o.Campaign != "":
		return usagef("--trace and --campaign both tell time: want one of them")
	case o.Counts != "" && len(o.Trace) == 0:
		return usagef("--counts is of a trace: add --trace")
	}
	return o.StepTime.Check()
}

// Judged learns placements from the statistics and judges them. Errors about the flags wrap ErrUsage.
func (p Placing) Judged(ctx context.Context) (*place.Result, error) {
	learn, judge, err := p.read()
	if err != nil {
		return nil, err
	}
	if err := p.size(slices.Concat(learn, judge)); err != nil {
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

// read reads the statistics, each file once. A pattern may match the placement of --from, too.
func (p *Placing) read() (learn, judge []*counts.Record, err error) {
	paths, err := Expanded(p.Learn)
	others := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		if p.From == "" || filepath.Clean(path) != filepath.Clean(p.From) {
			return false
		}
		_, unread := counts.ReadAs(path, p.Axes)
		return unread != nil
	})
	if len(others) > 0 {
		paths = others
	}
	if err == nil {
		learn, err = Records(paths, p.Axes)
	}
	if err == nil {
		judge, err = Records(p.Judge, p.Axes)
	}
	for _, r := range judge {
		paths = append(paths, r.Source)
	}
	if twice := noneTwice(paths); err == nil && twice != nil {
		err = fmt.Errorf("%w: a plan is not tested by the counts it was learned from", twice)
	}
	return learn, judge, err
}

// size finds how many ranks and redundant experts there are.
func (p *Placing) size(records []*counts.Record) (err error) {
	o, first := &p.Options, records[0]
	if p.From != "" {
		if len(o.Ranks) > 1 {
			return usagef("--from: want one --ep with it, have %v", o.Ranks)
		}
		ranks := append(slices.Clone(o.Ranks), first.Ranks)[0]
		if o.From, err = counts.ReadPlacement(p.From, ranks); err != nil {
			return err
		}
		o.Ranks = []int{o.From.Ranks}
	}
	if len(o.Ranks) == 0 {
		if first.Ranks == 0 {
			return usagef("--ep: want the number of ranks, which %s does not say", first.Source)
		}
		o.Ranks = []int{first.Ranks}
	}
	if o.Redundant == nil {
		o.Redundant = []int{o.Running(records)}
	}
	experts, err := first.ExpertsOf(o.Shape)
	if err != nil {
		return err
	}
	if n, err := place.Impossible(experts, o.Redundant, o.Ranks); err != nil {
		return usagef("--redundant %d: %v", n, err)
	}
	return nil
}

// curve predicts time from a campaign that measured it over load, for the tokens in a step of the record where
// none are given.
func (p *Placing) curve(record *counts.Record) error {
	read, err := p.Read()
	if err != nil {
		return err
	}
	if !read.Curved() {
		return usagef("--campaign has the gain of one arm: give a campaign of several routers, or --trace")
	}
	topK, tokens := record.TopK, float64(p.StepTokens)
	if p.Shape != nil {
		topK = p.Shape.TopK
	}
	if tokens == 0 && !record.Window && topK > 0 {
		tokens = place.SlotsPerStep(record) / float64(topK)
	}
	p.NoTime, p.Dose = router.Warning{}, &place.Dose{Tokens: tokens, Result: read.Result}
	return nil
}

// fit predicts time from a trace of the run that the record is of unless Counts names others.
func (p *Placing) fit(ctx context.Context, record *counts.Record) error {
	paths, err := RunCaptures(p.Trace, nil)
	if err != nil {
		return err
	}
	axes := p.Axes
	if p.Counts != "" {
		axes = nil
		if record, err = ReadCounts(p.Counts, nil); err != nil {
			return err
		}
	}
	t, err := Trace(ctx, paths, trace.Options{Threshold: p.Threshold},
		Statistics{Path: record.Source, Axes: axes, Shape: p.Shape})
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	p.Cost, p.NoTime, err = place.FromTrace(t, record)
	if c := p.Cost; c != nil && !slices.Contains(p.Ranks, c.Ranks) {
		p.Cost, p.NoTime = nil, router.Warn("no_time", "", "why", "ranks", "ranks", c.Ranks, "asked", p.Ranks[0])
	}
	return err
}
