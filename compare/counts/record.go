package counts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
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

// Record is what one file or folder says about expert load.
type Record struct {
	Source  string // the path it was read from
	Format  string // "TensorRT-LLM expert statistics", …
	Engine  string // that recorded it, placement.VLLM, …; empty where the format does not say
	Experts int    // routed logical experts; 0 where only ranks were counted
	// KnownExperts is Experts where the format says it; 0 where it is the largest that occurs, and there may be more.
	KnownExperts int
	TopK         int // experts per token; 0 where the format does not say
	Ranks        int // expert-parallel ranks; 0 where the format does not say
	// Phase is the kind of all steps, where the format tells them apart; see Phases.
	Phase Phase
	// Window is true where a step is the sum of an unknown number of forward
	// passes, in which busy ranks that alternate cancel.
	Window bool
	// Placement is where the experts were, where the format says so.
	Placement *placement.Map
	// Reported are figures that an engine printed about itself, from which no
	// load can be computed.
	Reported []Reported
	Warnings []router.Warning

	atLeast bool            // Experts is the largest that occurs
	layered bool            // a layer is named, or there are several; else layer 0 is one unknown, or all
	oneRank bool            // it is of one rank alone
	placed  placement.Slots // the last ones recorded
	ofAll   bool            // it counts what tokens chose, which is of all ranks
	steps   []Step          // by iteration, then layer
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

	sources int // how many recorded it, one after another; −1 where one is missing or comes twice
	padding int // choices that name no expert
}

func (s *Step) String() string { return fmt.Sprintf("iteration %d, layer %d", s.Iteration, s.Layer) }

// counted is the slots per expert, or else per rank.
func (s Step) counted() router.Load {
	if s.Load.PerExpert != nil {
		return s.Load
	}
	return router.Load{PerExpert: s.Received}
}

// stepKey is one iteration of one layer, and of one phase and model where several are recorded.
type stepKey struct {
	iteration    int64
	layer        int
	phase, model Phase
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

// phases by the names that engines and people give them; verifying drafts is decoding.
var phases = map[string]Phase{"prefill": Prefill, "prompt": Prefill, "context": Prefill, "extend": Prefill,
	"split_prefill": Prefill, "decode": Decode, "generation": Decode, "gen": Decode, "target_verify": Decode,
	"mixed": Mixed}

// Phases splits a record whose file tells kinds of work apart into one record each: prefill, decode, mixed, then other
// labels; the rest, without a label, comes last. Any other record is its own only part.
func (r *Record) Phases() (parts []*Record) {
	byPhase := map[Phase][]Step{}
	for _, s := range r.steps {
		byPhase[s.Phase] = append(byPhase[s.Phase], s)
	}
	if len(byPhase[""]) == len(r.steps) {
		return []*Record{r}
	}
	order := map[Phase]string{Prefill: "1", Decode: "2", Mixed: "3", "": "5"}
	at := func(p Phase) string { return cmp.Or(order[p], "4"+string(p)) }
	phases := slices.SortedFunc(maps.Keys(byPhase), func(a, b Phase) int { return cmp.Compare(at(a), at(b)) })
	for i, phase := range phases {
		part := r.with(byPhase[phase])
		if part.Phase = phase; i > 0 {
			part.Warnings = nil // the first one's are of the whole record
		}
		parts = append(parts, part)
	}
	return parts
}

// with is the record of other steps.
func (r *Record) with(steps []Step) *Record {
	out := *r
	out.steps = steps
	return &out
}

// Between is the record of the iterations from first to last.
func (r *Record) Between(first, last int64) *Record {
	return r.with(slices.DeleteFunc(slices.Clone(r.steps), func(s Step) bool {
		return s.Iteration < first || s.Iteration > last
	}))
}

// Steps are the steps by iteration, then layer.
func (r *Record) Steps() []Step { return r.steps }

// ByLayer sums the loads over iterations and source ranks. Use it to see which experts are hot; an imbalance computed
// from it would be the ratio of sums, in which busy experts that alternate cancel.
func (r *Record) ByLayer() map[int]router.Load {
	loads := map[int]router.Load{}
	for _, s := range r.steps {
		if loads[s.Layer].PerExpert == nil && s.Load.PerExpert != nil {
			loads[s.Layer] = router.NewLoad(len(s.Load.PerExpert))
		}
		loads[s.Layer].Merge(s.Load)
	}
	return loads
}

// LayerSlots are the slots recorded over all steps, by layer.
func (r *Record) LayerSlots() map[int]int64 {
	layers := map[int]int64{}
	for _, s := range r.steps {
		layers[s.Layer] += s.counted().Total()
	}
	return layers
}

// Slots is the number of slots recorded over all steps.
func (r *Record) Slots() (all int64) {
	for _, n := range r.LayerSlots() {
		all += n
	}
	return all
}

// Layers lists the recorded layers in order.
func (r *Record) Layers() []int { return slices.Sorted(maps.Keys(r.LayerSlots())) }

// Iterations lists the recorded iterations in order.
func (r *Record) Iterations() (list []int64) {
	for _, s := range r.steps {
		list = append(list, s.Iteration)
	}
	return slices.Compact(list)
}

func (r *Record) warn(code string, args ...any) {
	r.Warnings = append(r.Warnings, router.Warn(code, r.Source, args...))
}

// finish checks what every format must satisfy, and warns about what all steps show.
func (r *Record) finish() {
	if r.TopK > r.Experts && r.Experts > 0 {
		fail("want top-k between 1 and %d (the experts), have %d", r.Experts, r.TopK)
	}
	if len(r.steps) == 0 && len(r.Reported) == 0 {
		fail("holds no counts")
	}
	slots := r.LayerSlots()
	switch dense := slices.DeleteFunc(r.Layers(), func(layer int) bool { return slots[layer] > 0 }); {
	case len(dense) == 0:
	case len(dense) == len(slots):
		r.warn("no_load")
	default: // no step gave them any slot
		r.warn("dense_layers", "layers", dense)
		r.steps = slices.DeleteFunc(r.steps, func(s Step) bool { return slices.Contains(dense, s.Layer) })
	}
	var err error
	if r.Placement, err = r.Running(r.Ranks); err != nil {
		r.placed = nil
		r.warn("no_placement", "error", err.Error())
	}
	if !r.atLeast {
		r.KnownExperts = r.Experts
	}
	r.findOneRank()
	r.Engine = cmp.Or(r.Engine, engines[r.Format])
}

// engines that record in a format of their own.
var engines = map[string]string{statFormat: placement.SGLang, passFormat: placement.SGLang, loadFormat: placement.VLLM}

// Running is the placement that a record was made with, on so many ranks where it does not
// say how many there were; nil where it does not say, or had other ranks. The error is about a
// recorded map that places no experts on so many.
func (r *Record) Running(ranks int) (*placement.Map, error) {
	if len(r.placed) == 0 || ranks == 0 || r.Ranks > 0 && r.Ranks != ranks {
		return nil, nil
	}
	return placement.MapOf(r.Source, r.Experts, ranks, r.placed)
}

// OneRank is the code of the warning that a record is of one rank, whose load says nothing of all.
const OneRank = "one_rank"

// findOneRank warns where all slots are on one rank: on an equal run of several experts, each of which
// has some, or on one of the ranks that are counted. 256 experts, of which 0 to 15 have load → one
// of 16 ranks. What tokens chose is of all ranks; fewer than 64 slots may by chance all fall to half of the experts,
// and tokens that are all alike to two neighbors in one layer: HarMoEny's decoding Switch, [0 0 0 0 0 0 60 25].
func (r *Record) findOneRank() {
	level, all := router.LevelExpert, router.NewLoad(r.Experts)
	if r.Experts == 0 {
		level, all = router.LevelRank, router.NewLoad(r.Ranks)
	}
	for _, s := range r.steps {
		if r.Experts == 0 || s.Load.PerExpert != nil {
			all.Merge(s.counted())
		}
	}
	b, of := router.BalanceOf(all.PerExpert), len(all.PerExpert)
	run, first := b.Active, slices.IndexFunc(all.PerExpert, func(n int64) bool { return n > 0 })
	if r.ofAll || r.atLeast || b.Total < 64 || run == of || (run > 1) == (level == router.LevelRank) ||
		level == router.LevelExpert && run*len(r.Layers()) < 4 ||
		of%run != 0 || first%run != 0 || slices.Min(all.PerExpert[first:first+run]) == 0 {
		return
	}
	r.oneRank = true
	r.warn(OneRank, "level", level, "first", first, "last", first+run-1, "ranks", of/run)
}
