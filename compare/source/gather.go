package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// GatherOptions say how the inputs of a report are read.
type GatherOptions struct {
	Threshold float64
	Converter capture.Converter
	Skipped   Skipped
	Progress  func(paths []string) (read func(bytes int64), done func())
}

// Gather reads the inputs of a report: results, campaign folders, captures and folders of either,
// benchmark reports, and expert statistics. Captures come last, each arm's as one trace; one of each arm
// are compared, where no comparison is given.
func Gather(ctx context.Context, paths []string, o GatherOptions) ([]Item, error) {
	inputs, err := Classify(paths, o.Skipped)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	var all []string
	for _, in := range inputs {
		all = append(all, in.Paths...)
	}
	if err := once(all); err != nil {
		return nil, err
	}
	g := gatherer{GatherOptions: o}
	for _, in := range inputs {
		if err := g.add(in); err != nil {
			return nil, err
		}
	}
	if err := g.launches(); err != nil {
		return nil, err
	}
	if err := g.traces(ctx); err != nil {
		return nil, err
	}
	err = g.compare()
	return g.items, err
}

type gatherer struct {
	GatherOptions
	items    []Item
	captures []Input
	reports  []string // of benchmarks
}

// add reads an input, and keeps captures and reports for later. A file without a mark is expert
// statistics if they can be read, else a report.
func (g *gatherer) add(in Input) (err error) {
	path := in.Paths[0]
	item := Item{Name: filepath.Base(path)}
	switch in.Kind {
	case Captures:
		g.captures = append(g.captures, in)
		return nil
	case Campaigns:
		var judged Campaign
		judged, err = ReadCampaign(path)
		item.Campaign = &judged
	case Results:
		item, err = ReadResult(path)
	default:
		item.Given = []string{path}
		item.Counts, err = g.statistics(path)
		if _, no := readLaunches(path, nil); in.Kind == Reports && err != nil && no == nil {
			g.reports = append(g.reports, path)
			return nil
		}
		if errors.Is(err, counts.ErrUnknown) {
			_, err = ReadResult(path) // which says what it may be
		}
	}
	g.items = append(g.items, item)
	return err
}

// statistics are the judged expert statistics at a path.
func (g *gatherer) statistics(path string) (*counts.Result, error) {
	record, err := ReadCounts(path, nil)
	if err != nil {
		return nil, err
	}
	judged := counts.NewResult(g.Threshold)
	return judged, judged.Add(record, counts.Options{Threshold: g.Threshold})
}

// launches judges benchmark reports as compare does.
func (g *gatherer) launches() error {
	if len(g.reports) == 0 {
		return nil
	}
	arms, err := ReadArms(g.reports, nil)
	if err != nil {
		return err
	}
	set, err := ReadReports(arms.Sides, ReportOptions{Threshold: gain.DefaultThreshold})
	if err == nil {
		g.items = append(g.items, Item{Name: filepath.Base(g.reports[0]),
			Campaign: &Campaign{Result: gain.Judge(set.Campaign), Run: set.Run}})
	}
	return err
}

// traces reads the captures: a side for each arm where names or records tell both, else one run, which may
// hold the steps of both.
func (g *gatherer) traces(ctx context.Context) error {
	var all []string
	for _, in := range g.captures {
		all = append(all, in.Paths...)
	}
	read, done := g.Progress(all)
	defer done()
	options := trace.Options{Threshold: g.Threshold, Converter: g.Converter, Progress: read}
	var sides [2]Side
	if len(all) == 0 || byNames(g.captures, &sides) != nil {
		return g.run(ctx, all, options)
	}
	for i, side := range sides {
		t, err := Trace(ctx, side.Paths, options, Statistics{})
		if err != nil {
			return err
		}
		if t.Arm == "" {
			t = diff.AssumeArm(t, gain.Arms[i])
		}
		g.keep(t, side.Paths)
	}
	return nil
}

// run reads the captures of one run, and again for the perfect arm where they hold steps of other arms.
func (g *gatherer) run(ctx context.Context, paths []string, o trace.Options) error {
	for more := len(paths) > 0; more; o.Arm = string(gain.Perfect) {
		t, err := Trace(ctx, paths, o, Statistics{})
		if o.Arm != "" && errors.Is(err, trace.ErrArm) { // the others are two builds
			return nil
		}
		if err != nil {
			return err
		}
		g.keep(t, paths)
		more = o.Arm == "" && slices.ContainsFunc(t.Warnings,
			func(w router.Warning) bool { return w.Code == trace.OtherArms })
	}
	return nil
}

func (g *gatherer) keep(t *trace.Trace, paths []string) {
	name := cmp.Or(t.Arm, strings.TrimSuffix(filepath.Base(paths[0]), filepath.Ext(paths[0])))
	g.items = append(g.items, Item{Name: name, Given: Pattern(paths), Trace: t})
}

// compare adds the comparison of the traces, one of each arm, beside the campaign. Campaigns of different commands
// are refused: no advice joins what two programs did.
func (g *gatherer) compare() error {
	var traces [2][]*trace.Trace
	var campaigns []*Campaign
	compared := false
	for _, in := range g.items {
		if in.Campaign != nil {
			campaigns = append(campaigns, in.Campaign)
		}
		compared = compared || in.Compared != nil
		for i, arm := range gain.Arms {
			if in.Trace != nil && in.Trace.Arm == string(arm) {
				traces[i] = append(traces[i], in.Trace)
			}
		}
	}
	for _, other := range campaigns {
		if first := campaigns[0].Command; other.Command != first {
			return usagef("report: want the results of one program, have campaigns of %q and %q: give each a page of its own",
				first, other.Command)
		}
	}
	if compared || len(traces[0]) != 1 || len(traces[1]) != 1 {
		return nil
	}
	result := diff.Compare(traces[0][0], traces[1][0])
	if len(campaigns) == 1 {
		result.WithCampaign(campaigns[0].Result, 0)
	}
	g.items = append(g.items, Item{Name: "comparison", Compared: &result})
	return nil
}

// Pattern is the one pattern that matches these files and no others, where there is one
// with * for what differs in them; else the files.
func Pattern(files []string) []string {
	if len(files) < 2 {
		return files
	}
	first, last := slices.Min(files), slices.Max(files) // what these share, all share
	begin := 0
	for begin < min(len(first), len(last)) && first[begin] == last[begin] {
		begin++
	}
	end := len(first) - begin
	for _, f := range files {
		for end > len(f)-begin || f[len(f)-end:] != first[len(first)-end:] {
			end--
		}
	}
	pattern := first[:begin] + "*" + first[len(first)-end:]
	matched, err := filepath.Glob(pattern)
	if slices.Sort(matched); err != nil || !slices.Equal(matched, slices.Sorted(slices.Values(files))) {
		return files
	}
	return []string{pattern}
}
