package counts

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
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
)

// Record is what one file or folder says about expert load.
type Record struct {
	Source  string  // the path it was read from
	Format  string  // "TensorRT-LLM expert statistics", …
	Experts int     // routed logical experts; 0 where only ranks were counted
	TopK    int     // experts per token; 0 where the format does not say
	Ranks   int     // expert-parallel ranks; 0 where the format does not say
	Time    float64 // Unix seconds at which it was written; 0 where nothing says so
	// Phase is that of all steps, where the format tells them apart; see Phases.
	Phase Phase
	// Window is true where a step is the sum of an unknown number of forward
	// passes, in which busy ranks that alternate cancel.
	Window bool
	// Placement is where the experts were, where the format says so.
	Placement *Placement
	// Reported are figures that an engine printed about itself, from which no
	// load can be computed.
	Reported []Reported
	Warnings []router.Warning

	atLeast bool                   // Experts is the largest that occurs, and there may be more
	copies  map[int][]int32        // by layer: the expert of each physical copy, the last one recorded
	balance balance                // that the engine published, of which Reported has the means
	gauge   bool                   // it published its last step alone, not sums
	held    []Step                 // where the format is read whole
	stream  iter.Seq2[Step, error] // yields them in order; reads them anew each time where held is nil
	review  func()                 // warns about what the totals show, where the format can tell
	totals                         // of all steps
}

// Phase is what the tokens of a step were run for. It is empty where the format
// does not say.
type Phase string

// The phases of inference. A mixed step runs both.
const (
	Prefill Phase = "prefill"
	Decode  Phase = "decode"
	Mixed   Phase = "mixed"
)

// Phases splits a record whose format tells the phases apart into one record each,
// in the order of the constants; the rest, of no phase, comes last. Any other record
// is its own only part.
func (r *Record) Phases() ([]*Record, error) {
	byPhase := map[Phase][]Step{}
	for _, s := range r.held {
		byPhase[s.Phase] = append(byPhase[s.Phase], s)
	}
	if len(byPhase[""]) == len(r.held) {
		return []*Record{r}, nil
	}
	var parts []*Record
	for _, phase := range []Phase{Prefill, Decode, Mixed, ""} {
		if steps := byPhase[phase]; len(steps) > 0 {
			part, err := r.with(steps)
			if err != nil {
				return nil, err
			}
			part.Phase = phase
			parts = append(parts, part)
		}
	}
	for _, part := range parts[1:] {
		part.Warnings = nil // the first one's are of the whole record
	}
	return parts, nil
}

// with is the record of other steps.
func (r *Record) with(steps []Step) (*Record, error) {
	out := *r
	out.held, out.stream = steps, each(steps)
	return &out, out.total()
}

// Between is the record of the iterations from first to last.
func (r *Record) Between(first, last int64) (*Record, error) {
	outside := func(s Step) bool { return s.Iteration < first || s.Iteration > last }
	if r.held != nil {
		return r.with(slices.DeleteFunc(slices.Clone(r.held), outside))
	}
	out := *r
	out.stream = func(yield func(Step, error) bool) {
		for s, err := range r.stream {
			if (err != nil || !outside(s)) && !yield(s, err) {
				return
			}
		}
	}
	return &out, out.total()
}

// Steps yields the steps by iteration, then layer. What a step points to may be
// overwritten by the next one. An error, where the files can no longer be read,
// is the last value.
func (r *Record) Steps() iter.Seq2[Step, error] { return r.stream }

// Step is the load of one layer in one iteration, over all source ranks.
type Step struct {
	Iteration int64
	Layer     int
	Phase     Phase
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

// total is the slots of the step.
func (s Step) total() int64 {
	if s.Load.PerExpert != nil {
		return s.Load.Total()
	}
	return router.Load{PerExpert: s.Received}.Total()
}

// stepKey is one iteration of one layer, and of one phase where both are recorded.
type stepKey struct {
	iteration int64
	layer     int
	phase     Phase
}

// step is an empty one of this key.
func (k stepKey) step() Step { return Step{Iteration: k.iteration, Layer: k.layer, Phase: k.phase} }

// compare orders by iteration, then layer, then phase.
func (k stepKey) compare(other stepKey) int {
	return cmp.Or(cmp.Compare(k.iteration, other.iteration), cmp.Compare(k.layer, other.layer),
		cmp.Compare(k.phase, other.phase))
}

func (k stepKey) String() string { return fmt.Sprintf("iteration %d, layer %d", k.iteration, k.layer) }

func (s Step) key() stepKey { return stepKey{s.Iteration, s.Layer, s.Phase} }

// rankCounts counts the ranks that recorded a step. They come in order, and one
// that is missing or comes twice spoils the step: the load is the sum over the
// ranks, and a part of it has another balance.
type rankCounts map[stepKey]int

func (c rankCounts) add(key stepKey, rank int) {
	if c[key] == rank {
		c[key]++
	} else {
		c[key] = -1
	}
}

// warnAboutIncomplete says how many steps not every rank recorded exactly once.
func (r *Record) warnAboutIncomplete(c rankCounts) {
	dropped := 0
	for _, ranks := range c {
		if ranks != r.Ranks {
			dropped++
		}
	}
	if dropped > 0 {
		r.warn("incomplete_passes", "excluded", dropped, "passes", len(c), "ranks", r.Ranks)
	}
}

func (r *Record) warn(code string, args ...any) {
	r.Warnings = append(r.Warnings, router.Warn(code, r.Source, args...))
}

// finish sorts the steps that are held and checks what every format must satisfy.
func (r *Record) finish() error {
	slices.SortStableFunc(r.held, func(a, b Step) int { return a.key().compare(b.key()) })
	if r.TopK > r.Experts && r.Experts > 0 {
		return fmt.Errorf("want top-k between 1 and %d (the experts), have %d", r.Experts, r.TopK)
	}
	if err := bounded(r.Experts, r.Ranks); err != nil {
		return err
	}
	if r.stream == nil {
		r.stream = each(r.held)
	}
	if err := r.total(); err != nil {
		return err
	}
	if r.steps == 0 && len(r.Reported) == 0 {
		return errors.New("holds no counts")
	}
	if err := r.dropDense(); err != nil {
		return err
	}
	r.placeCopies()
	if r.review != nil {
		r.review()
	}
	return nil
}

// dropDense leaves out layers that no step gave any slot, as dense layers have none.
func (r *Record) dropDense() error {
	dense := slices.DeleteFunc(r.Layers(), func(layer int) bool { return r.layers[layer] > 0 })
	if len(dense) == 0 || r.slots == 0 || r.held == nil {
		return nil
	}
	r.warn("dense_layers", "layers", dense)
	kept, err := r.with(slices.DeleteFunc(r.held, func(s Step) bool { return r.layers[s.Layer] == 0 }))
	*r = *kept
	return err
}

// each yields steps that are held.
func each(steps []Step) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		for _, s := range steps {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// check is what every step must satisfy.
func (r *Record) check(s Step) error {
	if s.Load.PerExpert != nil && (len(s.Load.PerExpert) != r.Experts || r.Experts == 0) {
		return fmt.Errorf("want counts of %d experts, have %d", r.Experts, len(s.Load.PerExpert))
	}
	if s.Received != nil && len(s.Received) != r.Ranks {
		return fmt.Errorf("want counts of %d ranks, have %d", r.Ranks, len(s.Received))
	}
	if err := checkCounts(s.Load.PerExpert); err != nil {
		return fmt.Errorf("expert %w", err)
	}
	if err := checkCounts(s.Received); err != nil {
		return fmt.Errorf("rank %w", err)
	}
	return nil
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

// totals is what one walk over all steps finds. It is of the size of the layers
// and iterations, not of the steps.
type totals struct {
	steps      int
	layers     map[int]int64 // their slots
	iterations map[int64]bool
	slots      int64
	loads      map[int]router.Load // by layer, over iterations and source ranks
	received   bool                // every step counts what the ranks received
	sources    sources
}

// total walks over the steps once, checking each on the way.
func (r *Record) total() error {
	r.totals = totals{layers: map[int]int64{}, iterations: map[int64]bool{}, loads: map[int]router.Load{},
		received: true}
	var last stepKey
	for s, err := range r.stream {
		if err != nil {
			return err
		}
		if r.steps > 0 && s.key() == last {
			return fmt.Errorf("%v is recorded twice", last)
		}
		last = s.key()
		if err := r.check(s); err != nil {
			return fmt.Errorf("%v: %w", last, err)
		}
		r.totals.add(s)
	}
	return nil
}

func (c *totals) add(s Step) {
	c.steps++
	slots := s.total()
	c.layers[s.Layer] += slots
	c.iterations[s.Iteration] = true
	c.slots += slots
	c.received = c.received && s.Received != nil
	c.sources.add(s.Sent)
	if s.Load.PerExpert == nil {
		return
	}
	if _, ok := c.loads[s.Layer]; !ok {
		c.loads[s.Layer] = router.NewLoad(len(s.Load.PerExpert))
	}
	c.loads[s.Layer].Merge(s.Load)
}

// sources tells whether the source ranks differ.
type sources struct {
	differ bool // in some step they sent other counts
	uneven bool // before that, some step's counts were not even over the experts
}

func (c *sources) add(sent []router.Load) {
	if c.differ || len(sent) == 0 {
		return
	}
	first := sent[0].PerExpert
	c.differ = slices.ContainsFunc(sent, func(l router.Load) bool { return !slices.Equal(l.PerExpert, first) })
	c.uneven = c.uneven || slices.Max(first)-slices.Min(first) > 1
}

// ByLayer sums the loads over iterations and source ranks; the record keeps
// them. Use it to see which experts are hot; an imbalance computed from it would
// be the ratio of sums, in which busy experts that alternate cancel.
func (r *Record) ByLayer() map[int]router.Load { return r.loads }

// Slots is the number of slots recorded over all steps.
func (r *Record) Slots() int64 { return r.slots }

// LayerSlots are the slots recorded over all steps, by layer.
func (r *Record) LayerSlots() map[int]int64 { return r.layers }

// Layers lists the recorded layers in order.
func (r *Record) Layers() []int { return slices.Sorted(maps.Keys(r.layers)) }

// Iterations lists the recorded iterations in order.
func (r *Record) Iterations() []int64 { return slices.Sorted(maps.Keys(r.iterations)) }
