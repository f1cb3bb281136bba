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
// are compared, where no comparison is given.
func Gather(ctx context.Context, args []string, skipped func(paths []string), progress Progress) (items []Item,
	err error) {
	inputs, err := Classify(args, skipped)
	if err != nil {
		return nil, err
	}
	byKind := map[bool][]Input{}
	for _, in := range inputs {
		byKind[in.Kind == Captures] = append(byKind[in.Kind == Captures], in)
	}
	traced, err := traces(ctx, byKind[true], progress)
	if err != nil {
		return nil, err
	}
	ranks := len(append(traced, Item{Trace: &trace.Trace{}})[0].Trace.Ranks)
	var reports []string
	for _, in := range byKind[false] {
		if item, err := in.item(ranks); err != nil {
			return nil, err
		} else if item.Name == "" {
			reports = append(reports, in.Path)
		} else {
			item.Name = named(in.Path, byKind[false])
			items = append(items, item)
		}
	}
	if len(reports) > 0 {
		_, sides, err := ReadArms(reports, nil)
		if err != nil {
			return nil, err
		}
		judged, err := ReadReports(sides, ReportOptions{Threshold: gain.DefaultThreshold})
		if err != nil {
			return nil, err
		}
		items = append(items, Item{Name: filepath.Base(reports[0]), Campaign: &judged})
	}
	return compared(items, traced)
}

// named is a file's name, behind its folder where another input has the same: a/r.json and b/r.json.
func named(path string, inputs []Input) string {
	name := filepath.Base(path)
	if slices.ContainsFunc(inputs, func(in Input) bool { return in.Path != path && filepath.Base(in.Path) == name }) {
		return filepath.Join(filepath.Base(filepath.Dir(path)), name)
	}
	return name
}

// item reads an input that is no capture; counts that do not name ranks have the captures' ranks. A file without a mark
// is of counts if they can be read; of a benchmark report there is no item.
func (in Input) item(ranks int) (item Item, err error) {
	if in.Kind == Campaigns || in.Kind == Results {
		return ReadResult(in.Path)
	}
	record, err := ReadCounts(in.Path, nil)
	if err == nil {
		o := counts.Options{Threshold: gain.DefaultThreshold}
		if ranks > 0 && record.Ranks == 0 && record.Experts > 0 && record.Experts%ranks == 0 {
			o.Ranks = ranks
		}
		item = Item{Name: filepath.Base(in.Path), Given: []string{in.Path}, Counts: counts.NewResult(gain.DefaultThreshold)}
		return item, item.Counts.Add(record, o)
	}
	if _, no := readRuns(in.Path, nil); in.Kind == Files && !errors.As(no, new(*input.Error)) { // also points of a curve
		return item, nil
	} else if errors.Is(err, counts.ErrUnknown) {
		_, err = ReadResult(in.Path) // which says what it may be
	}
	return item, err
}

// traces reads captures: a side for each arm where names or records tell both, else one run, which may
// hold the steps of both.
func traces(ctx context.Context, captures []Input, progress Progress) (items []Item, err error) {
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
		t, err := trace.Read(ctx, side.Paths, o)
		switch {
		case side.Arm != "" && errors.Is(err, trace.ErrArm): // the others are two builds
			return items, nil
		case err != nil:
			return nil, err
		case mixed == nil && t.Arm == "":
			t = diff.AssumeArm(t, gain.Arms[i])
		}
		items = append(items, Item{Name: cmp.Or(t.Arm, filepath.Base(side.Paths[0])), Given: Pattern(side.Paths), Trace: t})
		other := func(w router.Warning) bool { return w.Code == trace.OtherArms }
		if mixed != nil && !slices.ContainsFunc(t.Warnings, other) {
			break
		}
	}
	return items, nil
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
	result := diff.Compare(traced[0].Trace, traced[1].Trace)
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
