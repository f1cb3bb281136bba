package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// ReadCounts reads a record; of arrays with the axes, nil for those they tell.
func ReadCounts(path string, axes counts.Axes) (*counts.Record, error) {
	record, err := counts.ReadAs(path, axes)
	if err == nil {
		return record, nil
	}
	switch inputs, unread := classify(path, nil, 0); {
	case unread != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, unread
	case unread == nil && inputs[0].Kind == Captures:
		return nil, &input.Error{File: path, Found: "this is a trace, not counts: 'moebalance trace' reads it", Err: err}
	}
	return nil, err
}

// Records reads the records that arguments name, each once.
func Records(args []string, axes counts.Axes) (records []*counts.Record, err error) {
	paths, err := Expanded(args)
	if err = cmp.Or(err, noneTwice(paths)); err != nil {
		return nil, err
	}
	for _, path := range paths {
		r, err := ReadCounts(path, axes)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// Statistics are the expert statistics of a traced run, none where the path is
// empty. The shape is the model's, nil where no model is named.
type Statistics struct {
	Path  string
	Shape *router.Shape
}

// Trace reads the exports of one run, and sets the expert statistics of the
// same run beside them.
func Trace(ctx context.Context, exports []string, o trace.Options, s Statistics) (*trace.Trace, error) {
	if s.Path != "" {
		var err error
		if o.Recorded, err = s.load(o.Threshold, 0); err != nil {
			return nil, err
		}
	}
	t, err := trace.Read(ctx, exports, o)
	if errors.Is(err, trace.ErrCounts) {
		err = fmt.Errorf("expert counts %q: %w", s.Path, err)
	}
	return t, err
}

// load reads them into what a trace can use of them, with contiguous experts on so
// many ranks; 0 takes the ranks that they record. Counts that record none are taken to be on the ranks of the trace,
// with contiguous experts: the engines' default, which is assumed.
func (s Statistics) load(threshold float64, ranks int) (r trace.Recorded, err error) {
	record, err := counts.Read(s.Path)
	if err != nil {
		return r, err
	}
	if _, err := record.ExpertsOf(s.Shape); err != nil {
		return r, err
	}
	layers, warnings, err := record.Imbalance(counts.Options{Threshold: threshold, Shape: s.Shape, Ranks: ranks})
	if err != nil {
		return r, err
	}
	r = trace.Recorded{Imbalance: layers, Layers: map[int]trace.Counted{}}
	for _, w := range slices.Concat(record.Warnings, warnings) {
		w.Code, w.Subject = "counts_"+w.Code, filepath.Base(w.Subject)
		r.Warnings = append(r.Warnings, w)
	}
	placement := record.Placement
	switch ranks = max(ranks, record.Ranks); {
	case placement == nil && ranks == 0:
		r.OnRanks = func(run, traced int) (trace.Recorded, error) {
			if run != traced || run > record.Experts {
				return r, nil
			}
			on, err := s.load(threshold, run)
			on.Warnings = append(on.Warnings, router.Warn("counts_assumed_ranks", filepath.Base(s.Path), "ranks", run))
			return on, err
		}
	case placement == nil:
		if placement, err = counts.Contiguous(record.Experts, ranks); err != nil {
			return r, fmt.Errorf("reading expert counts %q: %w", s.Path, err)
		}
	}
	for layer, load := range record.ByLayer() {
		c := trace.Counted{Load: load}
		if placement != nil {
			if c.Layout, err = placement.Layout(layer); err != nil {
				return r, err
			}
		}
		r.Layers[layer] = c
	}
	return r, nil
}
