package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// GatherOptions say how the inputs of a report are read.
type GatherOptions struct {
	Threshold float64
	Converter capture.Converter
	Skipped   Skipped
	Progress  func(paths []string) (read func(bytes int64), done func())
}

// Gather reads the inputs of a report: results, campaign folders, exports and
// folders of either, and folders of expert statistics. Exports come last, the exports of
// one arm as one trace; one of each arm are compared, where no comparison is given.
func Gather(ctx context.Context, paths []string, o GatherOptions) ([]Item, error) {
	if twice, again := repeated(paths); again {
		return nil, usagef("%s is named twice", twice)
	}
	inputs, err := classifyAll(paths, o.Skipped)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	g := gatherer{GatherOptions: o}
	for _, in := range inputs {
		if err := g.add(ctx, in); err != nil {
			return nil, err
		}
	}
	if err := g.launches(); err != nil {
		return nil, err
	}
	if err := cmp.Or(g.traces(ctx), g.oneProgram()); err != nil {
		return nil, err
	}
	g.compare()
	return g.items, nil
}

type gatherer struct {
	GatherOptions
	items   []Item
	exports []string
	reports []string // of benchmarks
}

// add reads an input, and keeps captures and reports for later.
func (g *gatherer) add(ctx context.Context, in Input) (err error) {
	path := in.Paths[0]
	var item Item
	switch in.Kind {
	case Captures:
		g.exports = append(g.exports, in.Paths...)
		return nil
	case Counts:
		item, err = g.statistics(ctx, path)
	case Campaigns:
		var judged Campaign
		judged, err = ReadCampaign(path)
		item = Item{Name: filepath.Base(path), Campaign: &judged}
	case Reports: // or expert statistics, which have no mark
		if item, err = g.statistics(ctx, path); err != nil {
			return g.report(path, err)
		}
	default:
		item, err = ReadResult(path)
	}
	if err == nil {
		g.items = append(g.items, item)
	}
	return err
}

// statistics are the judged expert statistics at a path.
func (g *gatherer) statistics(ctx context.Context, path string) (Item, error) {
	item := Item{Name: filepath.Base(path), Given: []string{path}}
	judged, err := Interruptible(ctx, func() (*counts.Result, error) {
		record, err := ReadCounts(path, nil)
		if err != nil {
			return nil, err
		}
		judged := counts.NewResult(g.Threshold)
		return judged, judged.Add(record, counts.Options{Threshold: g.Threshold})
	})
	item.Counts = judged
	return item, err
}

// report keeps a benchmark's report; why says why it is no file of expert statistics.
func (g *gatherer) report(path string, why error) error {
	if _, err := readLaunches(path, nil); err != nil {
		if !errors.Is(why, counts.ErrUnknown) {
			return why // of a damaged file, too
		}
		head, _ := headOf(path)
		if bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) {
			_, err := ReadResult(path)
			return err
		}
		found := "binary data"
		if utf8.Valid(head) {
			found = fmt.Sprintf("text that begins with %.12q", head)
		}
		return &input.Error{File: path, Expected: "a campaign folder, the JSON result of bench, trace, compare, counts, place " +
			"or logits verify, expert counts, benchmark reports, or captures (.sqlite, PyTorch traces, summaries)",
			Found: found}
	}
	g.reports = append(g.reports, path)
	return nil
}

// launches judges benchmark reports as compare does.
func (g *gatherer) launches() error {
	criteria := gain.Criteria{Threshold: gain.DefaultThreshold, Confidence: gain.DefaultConfidence,
		Tolerance: gain.DefaultTolerance}
	if len(g.reports) == 0 {
		return nil
	}
	arms, err := ReadArms(g.reports, nil)
	if err != nil {
		return err
	}
	set, err := ReadReports(arms.Sides, ReportOptions{Criteria: criteria})
	if err == nil {
		g.items = append(g.items, Item{Name: filepath.Base(g.reports[0]),
			Campaign: &Campaign{Result: gain.Judge(set.Campaign)}})
	}
	return err
}

// traces reads the exports of one arm together. Those that record none are of the arm that they
// are named after, where both arms are named; else they count as one run.
func (g *gatherer) traces(ctx context.Context) error {
	read, done := g.Progress(g.exports)
	defer done()
	options := trace.Options{Threshold: g.Threshold, Converter: g.Converter, Progress: read}
	recorded, named := map[string]gain.Arm{}, map[gain.Arm]bool{}
	for _, path := range g.exports {
		arm, err := trace.ReadArm(ctx, path, options)
		if err != nil {
			return err
		}
		recorded[path] = gain.Arm(arm)
		named[armOf(path)] = named[armOf(path)] || arm == ""
	}
	groups, assumed := map[gain.Arm][]string{}, map[gain.Arm]bool{}
	for _, path := range g.exports {
		arm := recorded[path]
		if arm == "" && named[gain.Normal] && named[gain.Perfect] {
			arm = armOf(path)
			assumed[arm] = arm != ""
		}
		groups[arm] = append(groups[arm], path)
	}
	for _, arm := range []gain.Arm{gain.Normal, gain.Perfect, ""} {
		if len(groups[arm]) == 0 {
			continue
		}
		both, err := g.trace(ctx, arm, groups[arm], assumed[arm], options)
		if err != nil {
			return err
		}
		if both && len(groups[gain.Perfect]) == 0 {
			options.Arm = string(gain.Perfect)
			_, err := g.trace(ctx, gain.Perfect, groups[arm], false, options)
			if options.Arm = ""; err != nil && !errors.Is(err, trace.ErrArm) { // the others are two builds
				return err
			}
		}
	}
	return nil
}

// trace reads the exports of an arm, "" for one that is not known, assumed where they do not record
// it; both reports that they hold steps of another arm too.
func (g *gatherer) trace(ctx context.Context, arm gain.Arm, paths []string, assumed bool, o trace.Options) (both bool,
	err error) {
	t, err := Trace(ctx, paths, o, Statistics{})
	if err != nil {
		return false, err
	}
	both = slices.ContainsFunc(t.Warnings, func(w router.Warning) bool { return w.Code == trace.OtherArms })
	if assumed && !both {
		t = diff.AssumeArm(t, arm)
	}
	name := cmp.Or(string(arm), strings.TrimSuffix(filepath.Base(paths[0]), filepath.Ext(paths[0])))
	g.items = append(g.items, Item{Name: name, Given: Pattern(paths), Trace: t})
	return both, nil
}

// oneProgram refuses campaigns of different commands: no advice joins what two programs did.
func (g *gatherer) oneProgram() error {
	var first *Campaign
	for _, in := range g.items {
		switch {
		case in.Campaign == nil:
		case first == nil:
			first = in.Campaign
		case first.Command != in.Campaign.Command:
			return usagef("report: want the results of one program, have campaigns of %q and %q: give each a page of its own",
				first.Command, in.Campaign.Command)
		}
	}
	return nil
}

// compare adds the comparison of the traces.
func (g *gatherer) compare() {
	var arms [2][]*trace.Trace
	var campaigns []*Campaign
	for _, in := range g.items {
		if in.Campaign != nil {
			campaigns = append(campaigns, in.Campaign)
		}
		if in.Compared != nil {
			return
		}
		for i, arm := range gain.Arms {
			if in.Trace != nil && in.Trace.Arm == string(arm) {
				arms[i] = append(arms[i], in.Trace)
			}
		}
	}
	if len(arms[0]) != 1 || len(arms[1]) != 1 {
		return
	}
	compared := diff.Compare(arms[0][0], arms[1][0])
	if len(campaigns) == 1 {
		compared.WithCampaign(campaigns[0].Result, 0)
	}
	g.items = append(g.items, Item{Name: "comparison", Compared: &compared})
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
