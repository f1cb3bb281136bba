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
	Axes  counts.Axes // nil for those that the file tells
	Shape *router.Shape
}

// Trace reads the exports of one run, and sets the expert statistics of the same run beside them. Statistics that
// record no ranks are taken to be on the ranks of the trace, with contiguous experts: the engines' default, which is
// assumed.
func Trace(ctx context.Context, exports []string, o trace.Options, s Statistics) (*trace.Trace, error) {
	if s.Path != "" {
		record, err := counts.ReadAs(s.Path, s.Axes)
		if err != nil {
			return nil, err
		}
		judged := counts.Options{Threshold: o.Threshold, Shape: s.Shape}
		if o.Recorded, err = beside(record, judged); err != nil {
			return nil, err
		}
		o.Recorded.OnRanks = func(run, traced int) (trace.Recorded, error) {
			if run != traced || run > record.Experts || record.Ranks > 0 || record.Placement != nil {
				return o.Recorded, nil
			}
			judged.Ranks = run
			on, err := beside(record, judged)
			on.Warnings = append(on.Warnings, router.Warn("counts_assumed_ranks", filepath.Base(s.Path), "ranks", run))
			return on, err
		}
	}
	t, err := trace.Read(ctx, exports, o)
	if errors.Is(err, trace.ErrCounts) {
		err = fmt.Errorf("expert counts %q: %w", s.Path, err)
	}
	return t, err
}

// beside is what a trace can use of a record.
func beside(record *counts.Record, o counts.Options) (r trace.Recorded, err error) {
	if _, err := record.ExpertsOf(o.Shape); err != nil {
		return r, err
	}
	rows, warnings, err := record.Imbalance(o)
	if err != nil {
		return r, err
	}
	r = trace.Recorded{Imbalance: rows, Layers: map[int]trace.Counted{}}
	topK := record.TopK
	if o.Shape != nil {
		topK = o.Shape.TopK
	}
	layers := 0 // of all steps, without those that hold no experts
	for _, s := range record.Steps() {
		if s.Load.Total() > 0 {
			layers++
		}
	}
	if n := layers * topK; n > 0 && !record.Window {
		r.StepTokens = float64(record.Slots()) / float64(n)
	}
	for _, w := range slices.Concat(record.Warnings, warnings) {
		w.Code, w.Subject = "counts_"+w.Code, filepath.Base(w.Subject)
		r.Warnings = append(r.Warnings, w)
	}
	placement := record.Placement
	if ranks := max(o.Ranks, record.Ranks); placement == nil && ranks > 0 {
		if placement, err = counts.Contiguous(record.Experts, ranks); err != nil {
			return r, fmt.Errorf("reading expert counts %q: %w", record.Source, err)
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
