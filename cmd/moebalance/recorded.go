package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// statistics are the expert statistics of a traced run, none where the path is
// empty. The shape is that of the model, nil where it is not named.
type statistics struct {
	path  string
	shape *router.Shape
}

// readTrace reads the exports of one run, and sets the expert statistics of the
// same run beside them.
func readTrace(ctx context.Context, exports []string, o nsys.Options, s statistics) (*nsys.Trace, error) {
	if s.path != "" {
		var err error
		if o.Recorded, err = interruptible(ctx, func() (nsys.Recorded, error) { return s.load(o.Threshold) }); err != nil {
			return nil, err
		}
	}
	t, err := nsys.Read(ctx, exports, o)
	if errors.Is(err, nsys.ErrCounts) {
		err = withCode(exitUsage, fmt.Errorf("expert statistics %q: %w", s.path, err))
	}
	return t, err
}

// withRankHint adds what to try where two exports are of one rank.
func withRankHint(err error, hint string) error {
	if errors.Is(err, nsys.ErrSameRank) {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

// rankFlag is that hint of the verbs that have the flag.
const rankFlag = "--rank FILE=N gives an export its rank"

// judgingError gives an error of judging expert statistics its code.
func judgingError(err error) error {
	if errors.Is(err, counts.ErrOptions) {
		return withCode(exitUsage, err)
	}
	return err
}

// load reads them into what a trace can use of them.
func (s statistics) load(threshold float64) (nsys.Recorded, error) {
	record, err := counts.Read(s.path)
	if err != nil {
		return nsys.Recorded{}, err
	}
	if record.Experts == 0 {
		return nsys.Recorded{}, fmt.Errorf("expert statistics %q: want slots per expert, have %s, which holds none; 'moebalance counts' shows what it does hold", s.path, record.Format)
	}
	layers, warnings, err := record.Imbalance(counts.Options{Threshold: threshold, Shape: s.shape})
	if err != nil {
		return nsys.Recorded{}, judgingError(err)
	}
	r := nsys.Recorded{Load: record.ByLayer(), Layout: map[int]router.Layout{}}
	for _, w := range slices.Concat(record.Warnings, warnings) {
		if w.Code == "no_ranks" { // whose text asks for a flag of the verb counts
			w.Text = "the number of ranks is not recorded, so only experts are judged, and no time is allocated"
		}
		r.Warnings = append(r.Warnings, router.Warning{Code: "counts_" + w.Code, Subject: base(w.Subject), Text: w.Text})
	}
	for _, l := range layers {
		r.Imbalance = append(r.Imbalance, nsys.ImbalanceStat{
			Layer: router.Whole(l.Layer), Level: l.Level, Quantity: nsys.QuantityLoad, Steps: l.Steps, Parts: l.Parts,
			MaxOverMean: l.MaxOverMean, Imbalance: l.Imbalance, Floor: l.Floor, NullP95: l.NullP95, Flagged: l.Flagged, Worst: l.Worst,
		})
	}
	placement := record.Placement
	if placement == nil && record.Ranks > 0 {
		if placement, err = counts.Contiguous(record.Experts, record.Ranks); err != nil {
			return nsys.Recorded{}, fmt.Errorf("reading expert statistics %q: %w", s.path, err)
		}
	}
	for layer := range r.Load {
		if placement == nil {
			break
		}
		if r.Layout[layer], err = placement.Layout(layer); err != nil {
			return nsys.Recorded{}, err
		}
	}
	return r, nil
}
