package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moebalance/moebalance/compare"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/plots/page"
)

// readReportInputs reads every path as what it is. Exports are read last and
// together, so that those of one arm become one trace.
func readReportInputs(ctx context.Context, paths []string, threshold float64) ([]page.Input, error) {
	var inputs []page.Input
	var exports []string
	for _, path := range paths {
		kind, err := reportKindOf(path)
		if err != nil {
			return nil, err
		}
		switch kind {
		case kindExport:
			exports = append(exports, path)
		case kindCampaign:
			in, profiled, err := campaignInput(path)
			if err != nil {
				return nil, err
			}
			inputs, exports = append(inputs, in), append(exports, profiled...)
		case kindCounts:
			in, err := countsInput(path, threshold)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, in)
		case kindResult:
			in, err := resultInput(path)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, in)
		}
	}
	traces, err := exportInputs(ctx, exports, threshold)
	return append(inputs, traces...), err
}

// reportKind is how a path is to be read.
type reportKind int

const (
	kindResult   reportKind = iota // JSON of a verb
	kindCampaign                   // folder of bench
	kindCounts                     // folder of expert statistics
	kindExport                     // nsys export or summary of some
)

// campaignFile marks a folder as a campaign.
const campaignFile = "campaign.sqlite"

func reportKindOf(path string) (reportKind, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("report: want a result, a campaign folder or an export: %w", err)
	}
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(path, campaignFile)); err == nil {
			return kindCampaign, nil
		}
		return kindCounts, nil
	}
	head, err := headOf(path)
	if err != nil {
		return 0, err
	}
	if looksLikeExport(path, head) {
		return kindExport, nil
	}
	if text := bytes.TrimSpace(head); len(text) == 0 || text[0] != '{' {
		return 0, fmt.Errorf("%s: not something to report on: want a campaign folder, the JSON result of bench, trace, compare, counts or logits verify, expert statistics in a folder, or an nsys export (.sqlite)", path)
	}
	return kindResult, nil
}

func resultInput(path string) (in page.Input, err error) {
	f, err := os.Open(path)
	if err != nil {
		return in, err
	}
	defer f.Close()
	return page.Read(filepath.Base(path), f)
}

// campaignInput judges the campaign in a folder, also while it runs, and names
// the exports of its profiled pair.
func campaignInput(folder string) (in page.Input, exports []string, err error) {
	c, err := bench.Open(folder)
	if err != nil {
		return in, nil, err
	}
	judged := judgeCampaign(c).CampaignResult
	for _, arm := range bench.Arms {
		exports = append(exports, c.Exports(arm)...)
	}
	return page.Input{Name: filepath.Base(filepath.Clean(folder)), Campaign: &judged}, exports, c.Close()
}

func countsInput(path string, threshold float64) (in page.Input, err error) {
	record, err := counts.Read(path)
	if err != nil {
		return in, fmt.Errorf("%s is neither a campaign folder (no %s) nor expert statistics: %w", path, campaignFile, err)
	}
	layers, warnings, err := record.Imbalance(counts.Options{Threshold: threshold})
	if err != nil {
		return in, err
	}
	result := page.Counts{Warnings: append(record.Warnings, warnings...)}
	for _, l := range layers {
		result.Imbalance = append(result.Imbalance, page.CountsLayer{Source: path, LayerBalance: l})
	}
	return page.Input{Name: filepath.Base(filepath.Clean(path)), Counts: &result}, nil
}

// exportInputs reads exports one by one to learn their arms, and those of one
// arm together. Exports that do not say their arm count as one run.
func exportInputs(ctx context.Context, paths []string, threshold float64) (inputs []page.Input, err error) {
	options := nsys.Options{Threshold: threshold}
	groups := map[string][]string{}
	alone := map[string]*nsys.Trace{}
	for _, path := range paths {
		t, err := nsys.Read(ctx, []string{path}, options)
		if err != nil {
			return nil, err
		}
		groups[t.Arm] = append(groups[t.Arm], path)
		alone[t.Arm] = t
	}
	for _, arm := range []string{string(compare.Normal), string(compare.Perfect), "mixed", ""} {
		t := alone[arm]
		switch group := groups[arm]; {
		case len(group) == 0:
			continue
		case len(group) > 1:
			if t, err = nsys.Read(ctx, group, options); err != nil {
				return nil, err
			}
		}
		name := arm
		if name == "" {
			name = filepath.Base(groups[arm][0])
		}
		inputs = append(inputs, page.Input{Name: name, Trace: t})
	}
	return inputs, nil
}
