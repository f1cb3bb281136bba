package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// isURL reports a path that nothing here downloads.
func isURL(path string) bool {
	return strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://")
}

func notFromURL(url string) error {
	return usagef("%s: URLs are not read: download it, with curl -o FILE %[1]s, and give the file", url)
}

// Expanded puts what quoted patterns match in their place, as next steps print many files.
func Expanded(paths []string) (all []string, err error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil || !isPattern(path) {
			all = append(all, path)
			continue
		}
		found, err := expand(path)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// ReadCounts reads a record; of arrays with the axes, nil for those they tell.
func ReadCounts(path string, axes counts.Axes) (*counts.Record, error) {
	if isURL(path) {
		return nil, notFromURL(path)
	}
	if path == "-" {
		return nil, usagef("standard input is not read: write it to a file, and give the file")
	}
	record, err := counts.ReadAs(path, axes)
	if err != nil {
		inputs, unknown := Classify(path, nil)
		if errors.Is(unknown, errPointer) {
			return nil, unknown
		}
		if unknown == nil && inputs[0].Kind == Captures {
			return nil, &input.Error{File: path, Found: "this is a trace, not counts: 'moebalance trace' reads it",
				Err: err}
		}
	}
	return record, err
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
		if o.Recorded, err = Interruptible(ctx,
			func() (trace.Recorded, error) { return s.load(o.Threshold, 0) }); err != nil {
			return nil, err
		}
	}
	t, err := trace.Read(ctx, exports, o)
	if errors.Is(err, trace.ErrCounts) {
		err = fmt.Errorf("expert counts %q: %w", s.Path, err)
	}
	if errors.Is(err, trace.ErrSameRank) {
		err = cmp.Or(severalRuns(exports), err)
	}
	return t, err
}

// rankNumber is that in the name of an export.
var rankNumber = regexp.MustCompile(`(?i)(rank[._-]?)\d+`)

// severalRuns names the runs that exports with equal ranks are of, and nothing where their
// names tell no ranks.
func severalRuns(exports []string) error {
	var runs []string
	for _, path := range exports {
		folder, name := filepath.Split(path)
		if !rankNumber.MatchString(name) {
			return nil
		}
		if run := launch.Quote([]string{folder + rankNumber.ReplaceAllString(name, "$1*")}); !slices.Contains(runs,
			run) {
			runs = append(runs, run)
		}
	}
	if len(runs) < 2 {
		return nil
	}
	return marked{fmt.Errorf("two files claim one rank, so the exports are of %d runs: %s; "+
		"give those of one run, or a run per side: moebalance compare %s", len(runs), strings.Join(runs, ", "),
		strings.Join(runs[:2], " ")), ErrNotComparable}
}

// onRanks takes counts that record no ranks to be on the ranks of the trace. That experts are
// contiguous there is the engines' default, and assumed.
func (s Statistics) onRanks(threshold float64, ranks int) (trace.Recorded, error) {
	r, err := s.load(threshold, ranks)
	r.Warnings = append(r.Warnings, router.Warn("counts_assumed_ranks", filepath.Base(s.Path), "ranks", ranks))
	return r, err
}

// load reads them into what a trace can use of them, with contiguous experts on so
// many ranks; 0 takes the ranks that they record.
func (s Statistics) load(threshold float64, ranks int) (trace.Recorded, error) {
	record, err := counts.Read(s.Path)
	if err != nil {
		return trace.Recorded{}, err
	}
	if record.Experts == 0 {
		return trace.Recorded{}, &input.Error{File: s.Path, Expected: "slots per expert", Found: record.Format +
			" without any", Try: "see 'moebalance counts' for its contents"}
	}
	layers, warnings, err := record.Imbalance(counts.Options{Threshold: threshold, Shape: s.Shape, Ranks: ranks})
	if err != nil {
		return trace.Recorded{}, err
	}
	r := trace.Recorded{Imbalance: layers}
	r.Load, r.Layout = record.ByLayer(), map[int]router.Layout{}
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
			return s.onRanks(threshold, run)
		}
	case placement == nil:
		if placement, err = counts.Contiguous(record.Experts, ranks); err != nil {
			return trace.Recorded{}, fmt.Errorf("reading expert counts %q: %w", s.Path, err)
		}
	}
	for layer := range r.Load {
		if placement == nil {
			break
		}
		if r.Layout[layer], err = placement.Layout(layer); err != nil {
			return trace.Recorded{}, err
		}
	}
	return r, nil
}
