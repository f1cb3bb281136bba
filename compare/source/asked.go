package source

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Reading is how exports are to be read, as flags give it.
type Reading struct {
	EP     int           `flag:"ep"`
	Ranks  []string      `flag:"rank"`
	Ranges []string      `flag:"range"`
	Phases []kernel.Rule `flag:"phase"`
}

// Options are the flags as a trace takes them. paths are the exports that Ranks may name.
func (r *Reading) Options(paths []string) (o trace.Options, err error) {
	if o.Phases, o.World = r.Phases, r.EP; r.EP < 0 || r.EP > capture.MaxRanks {
		return o, usagef("--ep: want 1 to %d ranks, have %d", capture.MaxRanks, r.EP)
	}
	if o.Patterns, err = ranges.NewPatterns(r.Ranges...); err != nil {
		return o, marked{err, ErrUsage}
	}
	o.Rank, err = r.rankOf(paths)
	return o, err
}

// rankOf is the ranks given by hand, FILE=N or N, by path or base name, "" for the only export.
func (r *Reading) rankOf(paths []string) (map[string]int, error) {
	ranks := map[string]int{}
	for _, text := range r.Ranks {
		at := max(0, strings.LastIndex(text, "="))
		file := text[:at]
		rank, err := strconv.Atoi(strings.TrimPrefix(text[at:], "="))
		_, twice := ranks[file]
		named := func(path string) bool { return path == file || filepath.Base(path) == file }
		switch {
		case err != nil || rank < 0 || rank >= capture.MaxRanks || twice:
			return nil, usagef("--rank: want FILE=N with N from 0 to %d, once for each export, have %q",
				capture.MaxRanks-1, text)
		case !slices.ContainsFunc(paths, named) && (file != "" || len(paths) > 1):
			return nil, usagef("--rank %s: want an export among the %d given, such as --rank %s=0", text, len(paths),
				filepath.Base(append(paths, "FILE")[0]))
		}
		ranks[file] = rank
	}
	return ranks, nil
}

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
