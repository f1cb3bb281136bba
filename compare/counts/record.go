package counts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Bounds on what a file may claim, far above any model, so that a few hostile
// bytes cannot ask for the machine's memory.
const (
	maxExperts = 1 << 16
	maxRanks   = 1 << 14
	maxLayers  = 1 << 14
	maxFile    = 1 << 30 // bytes of a file that is read whole

	maxUnpacked = 1 << 28 // bytes of what a zip unpacks to
)

// SchemaVersion is the version of the JSON that Warning and LayerBalance are
// parts of.
const SchemaVersion = 1

// Record is what one file or folder says about expert load.
type Record struct {
	Source  string // the path it was read from
	Format  string // "TensorRT-LLM expert statistics", …
	Experts int    // routed logical experts; 0 where only ranks were counted
	TopK    int    // experts per token; 0 where the format does not say
	Ranks   int    // expert-parallel ranks; 0 where the format does not say
	// Window is true where a step is the sum of an unknown number of forward
	// passes, in which busy ranks that alternate cancel.
	Window bool
	Steps  []Step // by iteration, then layer
	// Placement is where the experts were, where the format says so.
	Placement *Placement
	// Reported are figures that an engine printed about itself, from which no
	// load can be computed.
	Reported []Reported
	Warnings []router.Warning

	copies map[int][]int32 // by layer: the expert of each physical copy, the last one recorded
}

// Step is the load of one layer in one iteration, over all source ranks.
type Step struct {
	Iteration int64
	Layer     int
	// Load counts slots per logical expert; PerExpert is nil where only ranks
	// were counted.
	Load router.Load
	// Received counts slots per rank where the format records it; otherwise nil,
	// and the load per rank follows from a placement.
	Received []int64
	// Sent counts, by source rank, the slots that its own tokens chose; they add up
	// to Load. Nil where the format does not say who sent. The load of a rank is
	// what it receives, never this.
	Sent []router.Load
}

// send adds what the next source rank sent.
func (s *Step) send(sent router.Load) {
	s.Sent = append(s.Sent, sent)
	s.Load.Merge(sent)
}

// total is the slots of the step.
func (s Step) total() int64 {
	if s.Load.PerExpert != nil {
		return s.Load.Total()
	}
	return router.Load{PerExpert: s.Received}.Total()
}

// ByLayer sums the loads over iterations and source ranks. Use it to see which
// experts are hot; an imbalance computed from it would be the ratio of sums, in
// which busy experts that alternate cancel.
func (r *Record) ByLayer() map[int]router.Load {
	sums := map[int]router.Load{}
	for _, s := range r.Steps {
		if s.Load.PerExpert == nil {
			continue
		}
		if _, ok := sums[s.Layer]; !ok {
			sums[s.Layer] = router.NewLoad(len(s.Load.PerExpert))
		}
		sums[s.Layer].Merge(s.Load)
	}
	return sums
}

// byLayer sorts the steps by their layers.
func (r *Record) byLayer() map[int][]Step {
	steps := map[int][]Step{}
	for _, s := range r.Steps {
		steps[s.Layer] = append(steps[s.Layer], s)
	}
	return steps
}

// cellKey is one iteration of one layer.
type cellKey struct {
	iteration int64
	layer     int
}

// cells are steps that come in pieces.
type cells map[cellKey]*Step

// step is that of a cell, empty at first.
func (c cells) step(key cellKey, experts int) *Step {
	if c[key] == nil {
		c[key] = &Step{Iteration: key.iteration, Layer: key.layer, Load: router.NewLoad(experts)}
	}
	return c[key]
}

// addCells adds one step per cell; finish puts them in order.
func (r *Record) addCells(c cells) {
	for _, s := range c {
		r.Steps = append(r.Steps, *s)
	}
}

// tally counts the ranks that recorded a cell. They come in order, and one that
// is missing or comes twice spoils the cell: the load is the sum over the ranks,
// and a part of it has another balance.
type tally map[cellKey]int

func (t tally) add(key cellKey, rank int) {
	if t[key] == rank {
		t[key]++
	} else {
		t[key] = -1
	}
}

// warnAboutIncomplete says how many cells not every rank recorded exactly once.
func (r *Record) warnAboutIncomplete(t tally) {
	dropped := 0
	for _, ranks := range t {
		if ranks != r.Ranks {
			dropped++
		}
	}
	if dropped > 0 {
		r.warn("incomplete_passes", "left out %d of %d iterations × layers that not every one of the %d ranks recorded exactly once", dropped, len(t), r.Ranks)
	}
}

// Slots is the number of slots recorded over all steps.
func (r *Record) Slots() int64 {
	var sum int64
	for _, s := range r.Steps {
		sum += s.total()
	}
	return sum
}

// Layers lists the recorded layers in order.
func (r *Record) Layers() []int {
	return distinct(r.Steps, func(s Step) int { return s.Layer })
}

// Iterations lists the recorded iterations in order.
func (r *Record) Iterations() []int64 {
	return distinct(r.Steps, func(s Step) int64 { return s.Iteration })
}

func distinct[T cmp.Ordered](steps []Step, of func(Step) T) []T {
	seen := map[T]bool{}
	var out []T
	for _, s := range steps {
		if v := of(s); !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

func (r *Record) warn(code, format string, args ...any) {
	r.Warnings = append(r.Warnings, router.Warning{Code: code, Subject: r.Source, Text: fmt.Sprintf(format, args...)})
}

// finish sorts the steps and checks what every format must satisfy.
func (r *Record) finish() (*Record, error) {
	slices.SortStableFunc(r.Steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Iteration, b.Iteration), cmp.Compare(a.Layer, b.Layer))
	})
	if len(r.Steps) == 0 && len(r.Reported) == 0 {
		return nil, fmt.Errorf("holds no counts")
	}
	if r.TopK > r.Experts && r.Experts > 0 {
		return nil, fmt.Errorf("want top-k between 1 and %d (the experts), have %d", r.Experts, r.TopK)
	}
	if r.Experts > maxExperts || r.Ranks > maxRanks {
		return nil, fmt.Errorf("want at most %d experts and %d ranks, have %d and %d", maxExperts, maxRanks, r.Experts, r.Ranks)
	}
	for i, s := range r.Steps {
		where := fmt.Sprintf("iteration %d, layer %d", s.Iteration, s.Layer)
		if i > 0 && r.Steps[i-1].Iteration == s.Iteration && r.Steps[i-1].Layer == s.Layer {
			return nil, fmt.Errorf("%s is recorded twice", where)
		}
		if s.Load.PerExpert != nil && (len(s.Load.PerExpert) != r.Experts || r.Experts == 0) {
			return nil, fmt.Errorf("%s: want counts of %d experts, have %d", where, r.Experts, len(s.Load.PerExpert))
		}
		if s.Received != nil && len(s.Received) != r.Ranks {
			return nil, fmt.Errorf("%s: want counts of %d ranks, have %d", where, r.Ranks, len(s.Received))
		}
		if err := checkCounts(s.Load.PerExpert); err != nil {
			return nil, fmt.Errorf("%s: expert %w", where, err)
		}
		if err := checkCounts(s.Received); err != nil {
			return nil, fmt.Errorf("%s: rank %w", where, err)
		}
	}
	r.placeCopies()
	return r, nil
}

// maxCount keeps every sum of counts below 2⁶³.
const maxCount = 1 << 46

func checkCounts(counts []int64) error {
	for i, n := range counts {
		if n < 0 || n > maxCount {
			return fmt.Errorf("%d: want a count between 0 and %d, have %d", i, int64(maxCount), n)
		}
	}
	return nil
}
