package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// countsSchema is the version of the JSON of counts.
const countsSchema = 1

// Counts is the JSON of counts. Its lists repeat the source, so that each row stands
// alone.
type Counts struct {
	SchemaVersion int                   `json:"schema_version"`
	Kind          string                `json:"kind"` // always "counts"
	Threshold     float64               `json:"threshold"`
	Records       []CountsRecord        `json:"records"`
	Imbalance     []imbalance.SourceRow `json:"imbalance"`
	Summary       []CountsSummary       `json:"summary"`
	Loads         []CountsLoad          `json:"loads"`
	Traffic       []CountsTraffic       `json:"traffic"`
	Reported      []CountsReported      `json:"reported"`
	Warnings      []router.Warning      `json:"warnings"`
	// Load is the recorded load by layer, for a heat map. It comes from the statistics
	// themselves.
	Load map[int]router.Load `json:"-"`
}

// CountsRecord is what a record says of itself.
type CountsRecord struct {
	Source     string       `json:"source"`
	Phase      counts.Phase `json:"phase,omitempty"` // where the format separates phases
	Format     string       `json:"format"`
	Experts    router.Whole `json:"experts"` // these three are undefined where the format does not say
	TopK       router.Whole `json:"top_k"`
	Ranks      router.Whole `json:"ranks"`
	Iterations int          `json:"iterations"`
	Layers     int          `json:"layers"`
	Slots      int64        `json:"slots"`
}

// CountsSummary is the imbalance over the layers of a record.
type CountsSummary struct {
	Source  string       `json:"source"`
	Phase   counts.Phase `json:"phase,omitempty"` // where the format separates phases
	Flagged int          `json:"flagged"`         // as flagged_layers
	imbalance.Summary
}

// CountsLoad is the load of the experts of one layer of a record, over all its steps.
type CountsLoad struct {
	Source string       `json:"source"`
	Phase  counts.Phase `json:"phase,omitempty"` // where the format separates phases
	Layer  int          `json:"layer"`
	Slots  []int64      `json:"slots"` // by expert
}

// CountsTraffic is the traffic between ranks in one layer of a record.
type CountsTraffic struct {
	Source string       `json:"source"`
	Phase  counts.Phase `json:"phase,omitempty"` // where the format separates phases
	counts.LayerTraffic
}

// CountsReported is one line of a log that reports balance.
type CountsReported struct {
	Source string `json:"source"`
	counts.Reported
}

// NewCounts holds no record yet. JSON shows empty lists as such.
func NewCounts(threshold float64) *Counts {
	return &Counts{
		SchemaVersion: countsSchema, Kind: "counts", Threshold: threshold,
		Records: []CountsRecord{}, Imbalance: []imbalance.SourceRow{}, Summary: []CountsSummary{}, Loads: []CountsLoad{}, Traffic: []CountsTraffic{}, Reported: []CountsReported{}, Warnings: []router.Warning{},
	}
}

// Add judges a record, each of its phases on its own.
func (res *Counts) Add(r *counts.Record, o counts.Options) error {
	phases, err := r.Phases()
	for _, phase := range phases {
		err = cmp.Or(err, res.addPhase(phase, o))
	}
	return err
}

// IsURL reports whether a path is to be scraped.
func IsURL(path string) bool {
	return strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://")
}

// ReadCounts reads or scrapes a record; of arrays with the axes, nil for those they tell.
func ReadCounts(ctx context.Context, path string, axes counts.Axes) (*counts.Record, error) {
	if IsURL(path) {
		return counts.Scrape(ctx, path)
	}
	if _, err := os.Stat(path); err != nil && isPattern(path) {
		return nil, usagef("%s: no such file, and statistics are not read by patterns: let the shell expand it, without quotes", path)
	}
	record, err := counts.ReadAs(path, axes)
	if err != nil && holdsTraces(path) {
		return nil, &input.Error{File: path, Found: "this is a trace, not counts: 'moebalance trace' reads it", Err: err}
	}
	return record, err
}

// holdsTraces reports whether a file is a trace, or a folder has one.
func holdsTraces(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return err == nil && nsys.Takes(path)
	}
	files, err := FolderFiles(path, nil)
	return err == nil && len(files) > 0 && nsys.Takes(files[0])
}

// Earlier are the records of each path to subtract, nil for none: that of the file since, or
// what each URL says now, after which it waits for the span.
func Earlier(ctx context.Context, paths []string, since string, span time.Duration) ([]*counts.Record, error) {
	switch {
	case since != "":
		r, err := counts.Read(since)
		return slices.Repeat([]*counts.Record{r}, len(paths)), err
	case span == 0:
		return nil, nil
	}
	records := make([]*counts.Record, len(paths))
	var group errgroup.Group
	for i, url := range paths {
		group.Go(func() (err error) {
			records[i], err = counts.Scrape(ctx, url)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(span):
		return records, nil
	}
}

func (res *Counts) addPhase(r *counts.Record, o counts.Options) error {
	var layers []imbalance.Row
	var warnings []router.Warning
	var traffic []counts.LayerTraffic
	var group errgroup.Group // both read every step anew
	group.Go(func() (err error) { layers, warnings, err = r.Imbalance(o); return err })
	group.Go(func() (err error) { traffic, err = r.Traffic(o); return err })
	if err := group.Wait(); err != nil {
		return err
	}
	res.Records = append(res.Records, CountsRecord{
		Source: r.Source, Phase: r.Phase, Format: r.Format, Experts: known(r.Experts), TopK: known(r.TopK), Ranks: known(r.Ranks),
		Iterations: len(r.Iterations()), Layers: len(r.Layers()), Slots: r.Slots(),
	})
	for _, l := range layers {
		res.Imbalance = append(res.Imbalance, imbalance.SourceRow{Source: r.Source, Phase: string(r.Phase), Row: l})
	}
	for _, level := range []string{router.LevelRank, router.LevelExpert} {
		if s := imbalance.Summarize(layers, level, imbalance.Load); s.Layers > 0 {
			res.Summary = append(res.Summary, CountsSummary{Source: r.Source, Phase: r.Phase, Flagged: s.Flagged, Summary: s})
		}
	}
	loads := r.ByLayer()
	for _, layer := range slices.Sorted(maps.Keys(loads)) {
		res.Loads = append(res.Loads, CountsLoad{r.Source, r.Phase, layer, loads[layer].PerExpert})
	}
	for _, l := range traffic {
		res.Traffic = append(res.Traffic, CountsTraffic{Source: r.Source, Phase: r.Phase, LayerTraffic: l})
	}
	for _, line := range r.Reported {
		res.Reported = append(res.Reported, CountsReported{Source: r.Source, Reported: line})
	}
	res.Warnings = append(append(res.Warnings, r.Warnings...), warnings...)
	return nil
}

// WorstRank is the layer whose rank load is furthest above its floor; nil if none has
// a known load per rank.
func (res *Counts) WorstRank() *imbalance.SourceRow {
	var worst *imbalance.SourceRow
	for i, l := range res.Imbalance {
		if l.Level == router.LevelRank && l.Steps > 0 && (worst == nil || l.MaxOverMean/l.Floor > worst.MaxOverMean/worst.Floor) {
			worst = &res.Imbalance[i]
		}
	}
	return worst
}

// known is a number of which 0 means that it was not recorded.
func known(n int) router.Whole {
	if n == 0 {
		return router.None
	}
	return router.Whole(n)
}

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
		if o.Recorded, err = Interruptible(ctx, func() (nsys.Recorded, error) { return s.load(o.Threshold, 0) }); err != nil {
			return nil, err
		}
	}
	t, err := nsys.Read(ctx, exports, o)
	if errors.Is(err, nsys.ErrCounts) {
		err = fmt.Errorf("expert statistics %q: %w", s.Path, err)
	}
	if errors.Is(err, nsys.ErrSameRank) {
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
		if run := launch.Quote([]string{folder + rankNumber.ReplaceAllString(name, "$1*")}); !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	if len(runs) < 2 {
		return nil
	}
	return marked{fmt.Errorf("two files claim one rank, so the exports are of %d runs: %s; "+
		"give those of one run, or a run per side: moebalance compare %s", len(runs), strings.Join(runs, ", "), strings.Join(runs[:2], " ")), ErrNotComparable}
}

// onRanks takes counts that record no ranks to be on those of the trace. That experts are
// contiguous there is the engines' default, and assumed.
func (s Statistics) onRanks(threshold float64, ranks int) (nsys.Recorded, error) {
	r, err := s.load(threshold, ranks)
	r.Warnings = append(r.Warnings, router.Warn("counts_assumed_ranks", filepath.Base(s.Path), "ranks", ranks))
	return r, err
}

// load reads them into what a trace can use of them, with contiguous experts on so
// many ranks; 0 takes the ranks that they record.
func (s Statistics) load(threshold float64, ranks int) (nsys.Recorded, error) {
	record, err := counts.Read(s.Path)
	if err != nil {
		return nsys.Recorded{}, err
	}
	if record.Experts == 0 {
		return nsys.Recorded{}, &input.Error{File: s.Path, Expected: "slots per expert", Found: record.Format + " without any", Try: "see 'moebalance counts' for its contents"}
	}
	layers, warnings, err := record.Imbalance(counts.Options{Threshold: threshold, Shape: s.Shape, Ranks: ranks})
	if err != nil {
		return nsys.Recorded{}, err
	}
	r := nsys.Recorded{Imbalance: layers}
	r.Load, r.Layout = record.ByLayer(), map[int]router.Layout{}
	for _, w := range slices.Concat(record.Warnings, warnings) {
		w.Code, w.Subject = "counts_"+w.Code, filepath.Base(w.Subject)
		r.Warnings = append(r.Warnings, w)
	}
	placement := record.Placement
	switch ranks = max(ranks, record.Ranks); {
	case placement == nil && ranks == 0:
		r.OnRanks = func(run, traced int) (nsys.Recorded, error) {
			if run != traced || run > record.Experts {
				return r, nil
			}
			return s.onRanks(threshold, run)
		}
	case placement == nil:
		if placement, err = counts.Contiguous(record.Experts, ranks); err != nil {
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
