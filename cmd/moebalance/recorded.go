package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// readTrace reads the exports of one run, and sets the expert statistics of the
// same run beside them where their path is not empty.
func readTrace(ctx context.Context, exports []string, o nsys.Options, statistics string) (*nsys.Trace, error) {
	if statistics != "" {
		var err error
		if o.Recorded, err = recordedLoad(statistics, o.Threshold); err != nil {
			return nil, err
		}
	}
	t, err := nsys.Read(ctx, exports, o)
	if errors.Is(err, nsys.ErrCounts) {
		err = withCode(exitUsage, fmt.Errorf("expert statistics %q: %w", statistics, err))
	}
	return t, err
}

// recordedLoad reads expert statistics into what a trace can use of them.
func recordedLoad(path string, threshold float64) (nsys.Recorded, error) {
	record, err := counts.Read(path)
	if err != nil {
		return nsys.Recorded{}, err
	}
	if record.Experts == 0 {
		return nsys.Recorded{}, fmt.Errorf("expert statistics %q: want slots per expert, have %s, which holds none; 'moebalance counts' shows what it does hold", path, record.Format)
	}
	layers, _, err := record.Imbalance(counts.Options{Threshold: threshold})
	if err != nil {
		return nsys.Recorded{}, err
	}
	r := nsys.Recorded{Load: record.ByLayer(), Layout: map[int]router.Layout{}}
	for _, l := range layers {
		r.Imbalance = append(r.Imbalance, nsys.ImbalanceStat{
			Layer: l.Layer, Level: l.Level, Quantity: nsys.QuantityLoad, Steps: l.Steps, Parts: l.Parts,
			MaxOverMean: l.MaxOverMean, Imbalance: l.Imbalance, Floor: l.Floor, NullP95: l.NullP95, Flagged: l.Flagged, Worst: l.Worst,
		})
	}
	placement := record.Placement
	if placement == nil && record.Ranks > 0 {
		if placement, err = counts.Contiguous(record.Experts, record.Ranks); err != nil {
			return nsys.Recorded{}, fmt.Errorf("reading expert statistics %q: %w", path, err)
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
