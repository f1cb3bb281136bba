package counts

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

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

// Phase is the kind of work that a file labels a step with: prefill or decode, or the model or data
// set, which are judged apart. It is empty where the file does not say.
type Phase string

// The phases of inference. A mixed step runs both.
const (
	Prefill Phase = "prefill"
	Decode  Phase = "decode"
	Mixed   Phase = "mixed"
)

// and is the phase of steps that a second label tells apart: decode, "draft" → "decode, draft".
func (p Phase) and(label string) Phase {
	if p == "" {
		return Phase(label)
	}
	return p + ", " + Phase(label)
}

// phases by the names that engines and people give them; verifying drafts is decoding.
var phases = map[string]Phase{"": "", "prefill": Prefill, "prompt": Prefill, "context": Prefill, "extend": Prefill,
	"split_prefill": Prefill, "decode": Decode, "generation": Decode, "gen": Decode, "target_verify": Decode,
	"mixed": Mixed}

// phaseOf reads a name of a phase.
func phaseOf(text string) (Phase, error) {
	if phase, ok := phases[strings.ToLower(strings.TrimSpace(text))]; ok {
		return phase, nil
	}
	return "", fmt.Errorf(`want a phase of "prefill", "decode" or "mixed", have %q`, text)
}

// Phases splits a record whose file tells kinds of work apart into one record each,
// in the order of the constants, then of other labels; the rest, without a label, comes last. Any
// other record is its own only part.
func (r *Record) Phases() ([]*Record, error) {
	byPhase := map[Phase][]Step{}
	for _, s := range r.held {
		byPhase[s.Phase] = append(byPhase[s.Phase], s)
	}
	if len(byPhase[""]) == len(r.held) {
		return []*Record{r}, nil
	}
	var parts []*Record
	known := []Phase{Prefill, Decode, Mixed}
	for _, phase := range slices.Sorted(maps.Keys(byPhase)) {
		if phase != "" && !slices.Contains(known, phase) {
			known = append(known, phase)
		}
	}
	for _, phase := range append(known, "") {
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
	r.findOneRank()
	if r.review != nil {
		r.review()
	}
	return nil
}

// OneRank is the code of the warning that a record is of one rank, whose load says nothing of all.
const OneRank = "one_rank"

// leastSeen is the fewest slots that do not by chance all fall to half of the experts.
const leastSeen = 64

// findOneRank warns where all slots are on one rank: on an equal run of the experts, each of which
// has some, or on one of the ranks that are counted. 256 experts, of which 0 to 15 have load → one
// of 16 ranks.
func (r *Record) findOneRank() {
	level, load := router.LevelExpert, make([]int64, r.Experts)
	for s := range r.stream {
		if r.held == nil || r.atLeast || r.slots < leastSeen { // what tokens chose is of all ranks
			return
		}
		if r.Experts == 0 {
			level, load = router.LevelRank, append(load, make([]int64, max(0, len(s.Received)-len(load)))...)
			router.Load{PerExpert: load}.Merge(router.Load{PerExpert: s.Received})
			continue
		}
		router.Load{PerExpert: load}.Merge(s.Load)
	}
	idle := func(n int64) bool { return n == 0 }
	first := slices.IndexFunc(load, func(n int64) bool { return n > 0 })
	if first < 0 {
		return
	}
	run := slices.IndexFunc(load[first:], idle)
	if run < 0 {
		run = len(load) - first
	}
	if run == len(load) || len(load)%run != 0 || first%run != 0 || holdsAny(load[first+run:]) ||
		level == router.LevelRank && run > 1 {
		return
	}
	r.warn(OneRank, "level", level, "first", first, "last", first+run-1, "ranks", len(load)/run)
}

// oneRank reports a record of one rank alone.
func (r *Record) oneRank() bool {
	return slices.ContainsFunc(r.Warnings, func(w router.Warning) bool { return w.Code == OneRank })
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
