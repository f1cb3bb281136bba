package source

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// Progress begins to tell how captures are read. It returns what is told of bytes that were read, and of the end.
type Progress func(paths []string) (read func(bytes int64), done func())

// Gather reads the inputs of a report: results, campaign folders, captures and folders of either,
// benchmark reports, and expert statistics. Captures come last, each arm's as one trace; one of each arm
// are compared, where no comparison is given. Two arguments that name no arm are a side each, as ReadArms takes them,
// unless their captures are of one run.
func Gather(ctx context.Context, args []string, skipped func(paths []string), progress Progress) ([]Item, error) {
	inputs, err := Classify(args, skipped)
	if err != nil {
		return nil, err
	}
	items, captures, err := apart(inputs, args) // small ones first, as they may be broken
	if err != nil {
		return nil, err
	}
	traced, err := traces(ctx, captures, items, progress)
	if err != nil && ctx.Err() == nil && len(args) == 2 && len(captures) == len(inputs) && armOf(args[1]) != gain.Normal {
		if two, no := twoRuns(ctx, args, progress); no == nil && len(two) == 2 {
			traced, err = two, nil
		}
	}
	if err == nil {
		err = judgeCounts(items, traced)
	}
	if err != nil {
		return nil, err
	}
	return compared(items, traced)
}

// apart reads the inputs that are no captures; of benchmark reports, all together are one item.
func apart(inputs []Input, args []string) (items []Item, captures []Input, err error) {
	var reports []string
	for _, in := range inputs {
		if in.Kind == Captures {
			captures = append(captures, in)
		} else if item, err := in.item(); err != nil {
			return nil, nil, err
		} else if item.Name == "" {
			reports = append(reports, in.Path)
		} else {
			item.Name = named(in.Path, inputs)
			items = append(items, item)
		}
	}
	if len(reports) == 0 {
		return items, captures, nil
	}
	_, sides, err := ReadArms(reports, nil)
	if err != nil && len(args) == 2 && len(reports) == len(inputs) {
		_, sides, err = ReadArms(args, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	judged, err := ReadReports(sides, ReportOptions{Threshold: gain.DefaultThreshold})
	return append(items, Item{Name: filepath.Base(reports[0]), Campaign: &judged}), captures, err
}

// judgeCounts judges the records among the items, by the ranks of the traces where they do not say their own.
func judgeCounts(items, traced []Item) error {
	ranks := 0
	if len(traced) > 0 {
		ranks = len(traced[0].Trace.Ranks)
	}
	for _, in := range items {
		r, o := in.record, counts.Options{Threshold: gain.DefaultThreshold}
		if r == nil {
			continue
		}
		if ranks > 0 && r.Ranks == 0 && r.Experts > 0 && r.Experts%ranks == 0 {
			o.Ranks = ranks
		}
		if err := in.Counts.Add(r, o); err != nil {
			return err
		}
	}
	return nil
}

// named is a file's name, behind its folder where another input has the same: a/r.json and b/r.json.
func named(path string, inputs []Input) string {
	name := filepath.Base(path)
	if slices.ContainsFunc(inputs, func(in Input) bool { return in.Path != path && filepath.Base(in.Path) == name }) {
		return filepath.Join(filepath.Base(filepath.Dir(path)), name)
	}
	return name
}

// item reads an input that is no capture. A file without a mark is of counts if they can be read, which are judged when
// the captures' ranks are known; of a benchmark report there is no item.
func (in Input) item() (item Item, err error) {
	if in.Kind == Campaigns || in.Kind == Results {
		return ReadResult(in.Path)
	}
	record, err := ReadCounts(in.Path, nil)
	if err == nil {
		return Item{Name: filepath.Base(in.Path), Given: []string{in.Path}, Counts: counts.NewResult(gain.DefaultThreshold),
			record: record}, nil
	}
	if _, no := readRuns(in.Path, nil); in.Kind == Files && !errors.As(no, new(*input.Error)) { // also points of a curve
		return item, nil
	} else if errors.Is(err, counts.ErrUnknown) {
		_, err = ReadResult(in.Path) // which says what it may be
	}
	return item, err
}

// traces reads captures: a side for each arm where names or records tell both, else one run, which may
// hold the steps of both. Counts among the others are set beside the traces that they fit.
func traces(ctx context.Context, captures []Input, others []Item, progress Progress) (items []Item, err error) {
	all := pathsOf(captures)
	if len(all) == 0 {
		return nil, nil
	}
	read, done := progress(all)
	defer done()
	sides, mixed := sorted(captures)
	if mixed != nil {
		sides = [2]Side{{Paths: all}, {Paths: all, Arm: gain.Perfect}}
	}
	for i, side := range sides {
		o := trace.Options{Threshold: gain.DefaultThreshold, Progress: read, Arm: string(side.Arm)}
		arm := cmp.Or(side.Arm, armOf(side.Paths[0]))
		if arm == "" && mixed == nil {
			arm = gain.Arms[i]
		}
		t, counted, err := readBeside(ctx, side.Paths, o, arm, others)
		switch {
		case side.Arm != "" && errors.Is(err, trace.ErrArm): // the others are two builds
			return items, nil
		case err != nil:
			return nil, err
		case mixed == nil && t.Arm == "":
			t = diff.AssumeArm(t, gain.Arms[i])
		}
		items = append(items, Item{Name: cmp.Or(t.Arm, filepath.Base(side.Paths[0])), Given: Pattern(side.Paths),
			Counted: counted, Trace: t})
		other := func(w router.Warning) bool { return w.Code == trace.OtherArms }
		if mixed != nil && !slices.ContainsFunc(t.Warnings, other) {
			break
		}
	}
	return items, nil
}

// twoRuns reads the runs that two arguments hold, the learned side first: more than two where one is of both arms.
func twoRuns(ctx context.Context, args []string, progress Progress) (items []Item, err error) {
	for i, arm := range gain.Arms {
		run, err := Gather(ctx, args[i:i+1], nil, progress)
		if err != nil {
			return nil, err
		}
		run[0].Trace = diff.AssumeArm(run[0].Trace, arm)
		items = append(items, run...)
	}
	return items, nil
}

// readBeside reads captures of an arm with the first counts that fit them: counts of other steps, layers or ranks, and
// those that the trace contradicts, as they may be of the other arm, stay by themselves.
func readBeside(ctx context.Context, paths []string, o trace.Options, arm gain.Arm, others []Item) (*trace.Trace,
	[]string, error) {
	var apart []router.Warning
	counted := slices.DeleteFunc(slices.Clone(others), func(in Item) bool {
		if in.record == nil {
			return true
		}
		of := armOf(in.Given[0])
		return arm != "" && of != arm && (of != "" || arm == gain.Perfect)
	})
	slices.SortStableFunc(counted, func(a, b Item) int { // prefill first, as its steps lead
		return cmp.Compare(b.record.Slots(), a.record.Slots())
	})
	read, err := trace.Open(ctx, paths, o)
	if err != nil {
		return nil, nil, err
	}
	for _, in := range counted {
		with := o
		with.Recorded.OnRanks = onRanks(in.record, o.Threshold, nil)
		t, err := read.Trace(with)
		if err == nil && !slices.ContainsFunc(t.Warnings, unfit) {
			t.Warnings = append(t.Warnings, apart...)
			return t, in.Given, nil
		}
		apart = append(apart, router.Warn("counts_apart", in.Given[0]))
	}
	t, err := read.Trace(o)
	if err == nil && arm != gain.Perfect { // whose counts show nothing
		t.Warnings = append(t.Warnings, apart...)
	}
	return t, nil, err
}

// unfit is a warning of counts that are not of the trace's steps, layers or run.
func unfit(w router.Warning) bool {
	return slices.Contains([]string{trace.OtherSteps, trace.CountsContradict, trace.CountsLayers}, w.Code)
}

// compared adds the traces to the results, and their comparison where they are of both arms and none is given, beside
// the campaign. Campaigns of different commands are refused: no advice joins what two programs did.
func compared(items, traced []Item) ([]Item, error) {
	var campaigns []*Campaign
	enough := len(traced) != 2 || traced[0].Trace.Arm != string(gain.Normal) || traced[1].Trace.Arm != string(gain.Perfect)
	for _, in := range items {
		enough = enough || in.Compared != nil
		if c := in.Campaign; c != nil {
			if campaigns = append(campaigns, c); c.Command != campaigns[0].Command {
				return nil, usagef("want the results of one program, have campaigns of %q and %q: give each a page of its own",
					campaigns[0].Command, c.Command)
			}
		}
	}
	if items = append(items, traced...); enough {
		return items, nil
	}
	result := diff.Compare(traced[0].Trace, traced[1].Trace, gain.Builds{})
	if len(campaigns) == 1 {
		result.WithCampaign(campaigns[0].Result, campaigns[0].Run, 0)
	}
	return append(items, Item{Name: "comparison", Compared: &result}), nil
}

// Pattern is the one pattern that matches these files and no others, where there is one
// with * for what differs in them; else the files: a.rank0.json.gz a.rank1.json.gz → a.rank*.json.gz.
func Pattern(files []string) []string {
	if len(files) < 2 {
		return files
	}
	first, last, same := slices.Min(files), slices.Max(files), 0
	for same < min(len(first), len(last)) && first[same] == last[same] { // with which all files begin
		same++
	}
	pattern := first[:same] + "*" + first[same+strings.IndexByte(first[same:]+".", '.'):]
	matched, err := filepath.Glob(pattern)
	if slices.Sort(matched); err != nil || !slices.Equal(matched, slices.Sorted(slices.Values(files))) {
		return files
	}
	return []string{pattern}
}
