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
	maxCount   = 1 << 46 // keeps every sum of counts below 2⁶³
)

// bounded refuses sizes that no model has, before anything of that size is allocated.
func bounded(experts, ranks int) error {
	if experts < 0 || experts > maxExperts || ranks < 0 || ranks > maxRanks {
		return fmt.Errorf("want at most %d experts and %d ranks, have %d and %d", maxExperts, maxRanks, experts, ranks)
	}
	return nil
}

func checkCounts(counts []int64) error {
	for i, n := range counts {
		if n < 0 || n > maxCount {
			return fmt.Errorf("%d: want a count between 0 and %d, have %d", i, int64(maxCount), n)
		}
	}
	return nil
}

// Record is what one file or folder says about expert load.
type Record struct {
	Source  string  // the path it was read from
	Format  string  // "TensorRT-LLM expert statistics", …
	Experts int     // routed logical experts; 0 where only ranks were counted
	TopK    int     // experts per token; 0 where the format does not say
	Ranks   int     // expert-parallel ranks; 0 where the format does not say
	Time    float64 // Unix seconds at which it was written; 0 where nothing says so
	// Phase is the kind of all steps, where the format tells them apart; see Phases.
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
	placed  map[int][]int32        // by layer: the expert of each physical copy, the last one recorded
	gauge   bool                   // it published its last step alone, not sums
	ofAll   bool                   // it counts what tokens chose, which is of all ranks
	stream  iter.Seq2[Step, error] // yields the steps in order; may read them anew each time
	review  func()                 // warns about what the totals show, where the format can tell
	totals                         // of all steps
}

// totals is what one walk over all steps finds. It is of the size of the layers
// and iterations, not of the steps.
type totals struct {
	steps      int
	layers     map[int]int64 // their slots
	iterations map[int64]bool
	slots      int64
	labeled    bool                // a step has a phase
	loads      map[int]router.Load // by layer, over iterations and source ranks
	perRank    router.Load         // what the ranks received, over all
	received   bool                // in every step
}

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

func (s Step) key() stepKey { return stepKey{s.Iteration, s.Layer, s.Phase} }

// stepKey is one iteration of one layer, and of one phase where both are recorded.
type stepKey struct {
	iteration int64
	layer     int
	phase     Phase
}

// compare orders by iteration, then layer, then phase.
func (k stepKey) compare(other stepKey) int {
	return cmp.Or(cmp.Compare(k.iteration, other.iteration), cmp.Compare(k.layer, other.layer),
		cmp.Compare(k.phase, other.phase))
}

func (k stepKey) String() string { return fmt.Sprintf("iteration %d, layer %d", k.iteration, k.layer) }

// Phase is the kind of work that a file labels a step with: prefill or decode, or the model or data
// set, which are judged apart. It is empty where the file does not say.
type Phase string

// The phases of inference. A mixed step runs both.
const (
	Prefill Phase = "prefill"
	Decode  Phase = "decode"
	Mixed   Phase = "mixed"
)

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
func (r *Record) Phases() (parts []*Record, err error) {
	if !r.labeled {
		return []*Record{r}, nil
	}
	byPhase := map[Phase][]Step{} // formats that tell them are read whole
	for s, err := range r.stream {
		if err != nil {
			return nil, err
		}
		byPhase[s.Phase] = append(byPhase[s.Phase], s)
	}
	place := func(p Phase) int {
		if p == "" {
			return 4
		}
		return slices.Index([]Phase{Prefill, Decode, Mixed, p}, p)
	}
	for _, phase := range slices.SortedFunc(maps.Keys(byPhase), func(a, b Phase) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	}) {
		part, err := r.with(each(byPhase[phase]))
		if err != nil {
			return nil, err
		}
		if part.Phase = phase; len(parts) > 0 {
			part.Warnings = nil // the first one's are of the whole record
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// where is the record of some of the steps.
func (r *Record) where(keep func(Step) bool) (*Record, error) {
	all := r.stream
	return r.with(func(yield func(Step, error) bool) {
		for s, err := range all {
			if (err != nil || keep(s)) && !yield(s, err) {
				return
			}
		}
	})
}

// with is the record of other steps.
func (r *Record) with(steps iter.Seq2[Step, error]) (*Record, error) {
	out := *r
	out.stream = steps
	return &out, out.total()
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

// Between is the record of the iterations from first to last.
func (r *Record) Between(first, last int64) (*Record, error) {
	return r.where(func(s Step) bool { return first <= s.Iteration && s.Iteration <= last })
}

// Steps yields the steps by iteration, then layer. What a step points to may be
// overwritten by the next one. An error, where the files can no longer be read,
// is the last value.
func (r *Record) Steps() iter.Seq2[Step, error] { return r.stream }

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

// total walks over the steps once, checking each on the way.
func (r *Record) total() error {
	r.totals = totals{layers: map[int]int64{}, iterations: map[int64]bool{}, loads: map[int]router.Load{},
		perRank: router.NewLoad(r.Ranks), received: true}
	for s, err := range r.stream {
		if err == nil {
			err = r.check(s)
		}
		if err != nil {
			return err
		}
		slots := s.total()
		r.steps, r.slots, r.received = r.steps+1, r.slots+slots, r.received && s.Received != nil
		r.iterations[s.Iteration] = true
		r.labeled = r.labeled || s.Phase != ""
		r.perRank.Merge(router.Load{PerExpert: s.Received})
		if r.layers[s.Layer] += slots; s.Load.PerExpert == nil {
			continue
		}
		if _, ok := r.loads[s.Layer]; !ok {
			r.loads[s.Layer] = router.NewLoad(len(s.Load.PerExpert))
		}
		r.loads[s.Layer].Merge(s.Load)
	}
	return nil
}

// check is what every step must satisfy.
func (r *Record) check(s Step) error {
	err := checkCounts(s.Load.PerExpert)
	if err == nil {
		err = checkCounts(s.Received)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%v: %w", s.key(), err)
	case s.Load.PerExpert != nil && (len(s.Load.PerExpert) != r.Experts || r.Experts == 0):
		return fmt.Errorf("%v: want counts of %d experts, have %d", s.key(), r.Experts, len(s.Load.PerExpert))
	case s.Received != nil && len(s.Received) != r.Ranks:
		return fmt.Errorf("%v: want counts of %d ranks, have %d", s.key(), r.Ranks, len(s.Received))
	}
	return nil
}

func (r *Record) warn(code string, args ...any) {
	r.Warnings = append(r.Warnings, router.Warn(code, r.Source, args...))
}

// finish checks what every format must satisfy, and warns about what all steps show.
func (r *Record) finish() error {
	if r.TopK > r.Experts && r.Experts > 0 {
		return fmt.Errorf("want top-k between 1 and %d (the experts), have %d", r.Experts, r.TopK)
	}
	err := cmp.Or(bounded(r.Experts, r.Ranks), r.total())
	switch {
	case err != nil:
		return err
	case r.steps == 0 && len(r.Reported) == 0:
		return errors.New("holds no counts")
	}
	if err := r.dropDense(); err != nil {
		return err
	}
	if r.Placement, err = r.Running(r.Ranks); err != nil {
		r.placed = nil
		r.warn("no_placement", "error", err.Error())
	}
	r.findOneRank()
	if r.review != nil {
		r.review()
	}
	return nil
}

// dropDense leaves out layers that no step gave any slot, as dense layers have none.
func (r *Record) dropDense() error {
	dense := slices.DeleteFunc(r.Layers(), func(layer int) bool { return r.layers[layer] > 0 })
	if len(dense) == 0 || r.slots == 0 {
		return nil
	}
	r.warn("dense_layers", "layers", dense)
	kept, err := r.where(func(s Step) bool { return !slices.Contains(dense, s.Layer) })
	*r = *kept
	return err
}

// Running is the placement that a record was made with, on so many ranks where it does not
// say how many there were; nil where it does not say, or had other ranks. The error is about a
// recorded map that places no experts on so many.
func (r *Record) Running(ranks int) (*Placement, error) {
	if r.Placement != nil || len(r.placed) == 0 || ranks == 0 || r.Ranks > 0 && r.Ranks != ranks {
		if r.Placement != nil && r.Placement.Ranks == ranks {
			return r.Placement, nil
		}
		return nil, nil
	}
	f := found{held: map[int][][]int32{}}
	for layer, slots := range r.placed {
		f.held[layer] = [][]int32{slots}
	}
	f, err := f.divided(ranks)
	p := &Placement{Source: r.Source, Experts: r.Experts, Ranks: ranks}
	for _, layer := range slices.Sorted(maps.Keys(f.held)) {
		if err == nil {
			err = p.place(layer, f.held[layer])
		}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// OneRank is the code of the warning that a record is of one rank, whose load says nothing of all.
const OneRank = "one_rank"

// leastSeen is the fewest slots that do not by chance all fall to half of the experts.
const leastSeen = 64

// findOneRank warns where all slots are on one rank: on an equal run of the experts, each of which
// has some, or on one of the ranks that are counted. 256 experts, of which 0 to 15 have load → one
// of 16 ranks. What tokens chose is of all ranks.
func (r *Record) findOneRank() {
	if r.ofAll || r.atLeast || r.slots < leastSeen {
		return
	}
	level, load := router.LevelRank, r.perRank.PerExpert
	if r.Experts > 0 {
		level, load = router.LevelExpert, make([]int64, r.Experts)
	}
	for _, l := range r.loads {
		router.Load{PerExpert: load}.Merge(l)
	}
	first := slices.IndexFunc(load, func(n int64) bool { return n > 0 })
	if first < 0 {
		return
	}
	run := slices.Index(append(load[first:len(load):len(load)], 0), 0)
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
