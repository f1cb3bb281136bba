package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots/page"
	"github.com/moebalance/moebalance/router"
)

// reportInputs turns paths into the inputs of a page.
type reportInputs struct {
	threshold float64
	counts    map[string]string // expert statistics of exports, by arm
	shape     *router.Shape     // of the model of all expert statistics, nil where it is not named
	progress  func(paths []string) (show func(bytes int64), done func())
	inputs    []page.Input
	exports   []string
	launched  map[string]gain.Arm // exports whose arm their campaign knows, by path
}

// read takes every path as what it is. Exports come last and together, so that
// those of one arm become one trace.
func (r *reportInputs) read(ctx context.Context, paths []string) ([]page.Input, error) {
	if twice, again := source.Repeated(paths); again {
		return nil, usagef("%s is named twice", twice)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("report: want a result, a campaign folder or an export: %w", err)
		case info.IsDir():
			err = r.folder(ctx, path)
		default:
			err = r.file(path)
		}
		if err != nil {
			return nil, err
		}
	}
	return r.inputs, r.traces(ctx)
}

func (r *reportInputs) add(path string, in page.Input) {
	in.Name = filepath.Base(filepath.Clean(path))
	r.inputs = append(r.inputs, in)
}

func (r *reportInputs) file(path string) error {
	head, err := source.Head(path)
	if err != nil {
		return err
	}
	if nsys.Takes(path) {
		r.exports = append(r.exports, path)
		return nil
	}
	if text := bytes.TrimSpace(head); len(text) == 0 || text[0] != '{' {
		return fmt.Errorf("%s: want a campaign folder, the JSON result of bench, trace, compare, counts or logits verify, a folder of expert statistics, or an nsys export (.sqlite)", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := page.Read(filepath.Base(path), f)
	if err != nil {
		return err
	}
	r.inputs = append(r.inputs, in)
	return nil
}

// folder is a campaign, exports, or expert statistics, asked in that order.
func (r *reportInputs) folder(ctx context.Context, path string) error {
	if bench.IsCampaign(path) {
		return r.campaign(ctx, path)
	}
	if files, err := source.FolderFiles(path); err == nil && nsys.Takes(files[0]) {
		r.exports = append(r.exports, files...)
		return nil
	}
	result, err := source.Interruptible(ctx, func() (*page.Counts, error) { return r.statistics(path) })
	if err != nil {
		return err
	}
	r.add(path, page.Input{Counts: result})
	return nil
}

// statistics judges the expert statistics in a folder.
func (r *reportInputs) statistics(path string) (*page.Counts, error) {
	record, err := counts.Read(path)
	if err != nil {
		return nil, fmt.Errorf("folder %s holds no campaign (campaign.sqlite), no exports (*.sqlite), and no expert statistics: %w", path, err)
	}
	layers, warnings, err := record.Imbalance(counts.Options{Threshold: r.threshold, Shape: r.shape})
	if err != nil {
		return nil, err
	}
	result := &page.Counts{Warnings: append(record.Warnings, warnings...), Load: record.ByLayer()}
	for _, l := range layers {
		result.Imbalance = append(result.Imbalance, page.CountsLayer{Source: path, Row: l})
	}
	return result, nil
}

// campaign judges the campaign in a folder, also while it runs, and takes the
// exports of its profiled pair along.
func (r *reportInputs) campaign(ctx context.Context, folder string) error {
	c, err := bench.Open(folder)
	if err != nil {
		return err
	}
	judged, err := source.Judge(ctx, c, r.threshold, nil)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	r.add(folder, page.Input{Campaign: &page.Campaign{Result: judged.Result, Progress: page.Progress{
		Folder: judged.Campaign.Folder, Pairs: judged.Campaign.Pairs, Looks: judged.Campaign.Looks, Left: judged.Campaign.Left,
	}}})
	for _, arm := range bench.Arms {
		for _, path := range c.Exports(arm) {
			r.exports = append(r.exports, path)
			if !source.Recorded(c.Spec.Treatment) {
				r.launched[path] = arm
			}
		}
	}
	return c.Close()
}

// traces asks the exports for their arms, and reads those of one arm together.
// Exports that do not say their arm count as one run.
func (r *reportInputs) traces(ctx context.Context) error {
	show, done := r.progress(r.exports)
	defer done()
	options := nsys.Options{Threshold: r.threshold, Converter: reportConverter(), Progress: show}
	groups := map[string][]string{}
	for _, path := range r.exports {
		arm, err := nsys.ReadArm(ctx, path, options)
		if err != nil {
			return err
		}
		if launched, ok := r.launched[path]; ok {
			arm = string(launched)
		}
		groups[arm] = append(groups[arm], path)
	}
	for arm := range r.counts {
		if len(groups[arm]) == 0 {
			return usagef("--counts-%s: no export of the %s arm is given", arm, arm)
		}
	}
	for _, arm := range []string{string(gain.Normal), string(gain.Perfect), "mixed", ""} {
		group := groups[arm]
		if len(group) == 0 {
			continue
		}
		t, err := source.Trace(ctx, group, options, source.Statistics{Path: r.counts[arm], Shape: r.shape})
		if err != nil {
			return withRankHint(err, "use the JSON of 'moebalance trace --rank FILE=N --format json', which sets the rank of an export")
		}
		if launched, ok := r.launched[group[0]]; ok {
			t = diff.OnTrust(t, launched)
		}
		name := arm
		if name == "" {
			name = strings.TrimSuffix(filepath.Base(group[0]), filepath.Ext(group[0]))
		}
		r.inputs = append(r.inputs, page.Input{Name: name, Trace: t})
	}
	return nil
}
