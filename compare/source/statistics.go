package source

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// Statistics are the expert statistics of a traced run, none where the path is
// empty. The shape is that of the model, nil where it is not named.
type Statistics struct {
	Path  string
	Shape *router.Shape
}

// Trace reads the exports of one run, and sets the expert statistics of the
// same run beside them.
func Trace(ctx context.Context, exports []string, o nsys.Options, s Statistics) (*nsys.Trace, error) {
	if s.Path != "" {
		var err error
		if o.Recorded, err = Interruptible(ctx, func() (nsys.Recorded, error) { return s.load(o.Threshold) }); err != nil {
			return nil, err
		}
	}
	t, err := nsys.Read(ctx, exports, o)
	if errors.Is(err, nsys.ErrCounts) {
		err = fmt.Errorf("expert statistics %q: %w", s.Path, err)
	}
	return t, err
}

// load reads them into what a trace can use of them.
func (s Statistics) load(threshold float64) (nsys.Recorded, error) {
	record, err := counts.Read(s.Path)
	if err != nil {
		return nsys.Recorded{}, err
	}
	if record.Experts == 0 {
		return nsys.Recorded{}, &input.Error{File: s.Path, Expected: "slots per expert", Found: record.Format + " without any", Try: "see 'moebalance counts' for its contents"}
	}
	layers, warnings, err := record.Imbalance(counts.Options{Threshold: threshold, Shape: s.Shape})
	if err != nil {
		return nsys.Recorded{}, err
	}
	r := nsys.Recorded{Load: record.ByLayer(), Layout: map[int]router.Layout{}}
	for _, w := range slices.Concat(record.Warnings, warnings) {
		if w.Code == "no_ranks" { // whose text asks for a flag of the verb counts
			w.Text = "the number of ranks is not recorded, so only expert load is reported, and no time is allocated"
		}
		r.Warnings = append(r.Warnings, router.Warning{Code: "counts_" + w.Code, Subject: filepath.Base(w.Subject), Text: w.Text})
	}
	for _, l := range layers {
		r.Imbalance = append(r.Imbalance, imbalance.Row{
			Layer: router.Whole(l.Layer), Level: l.Level, Quantity: imbalance.Load, Steps: l.Steps, Parts: l.Parts,
			MaxOverMean: l.MaxOverMean, Imbalance: l.Imbalance, Floor: l.Floor, NullP95: l.NullP95, Flagged: l.Flagged, Worst: l.Worst,
		})
	}
	placement := record.Placement
	if placement == nil && record.Ranks > 0 {
		if placement, err = counts.Contiguous(record.Experts, record.Ranks); err != nil {
			return nsys.Recorded{}, fmt.Errorf("reading expert statistics %q: %w", s.Path, err)
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
