package nsys

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/kernel"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// ErrCounts is the error of recorded counts that cannot be of the captured run.
var ErrCounts = errors.New("the recorded counts do not match the trace")

// idleShare is the share of recorded slots that experts which never ran may
// hold without a warning: counts may span more steps than a capture.
const idleShare = 0.05

// observedExpert is an expert of a layer that owned kernels on a rank.
type observedExpert struct{ layer, expert, rank int32 }

// checkRecorded compares the recorded counts with what the trace shows. It refuses
// counts that contradict it:
//
//   - a rank in the trace that they do not have;
//   - an expert that they do not have, or that ran on a rank that does not own it;
//   - a kernel of the gate that is made for another number of experts;
//   - layers numbered otherwise: none in common, or each side has some that the
//     other lacks;
//   - more layers than a whole trace has, see tooDeep.
//
// A trace says nothing of the model's top-k and, where one kernel serves all
// experts, nothing of its tokens: those are held against a model that is named, by
// who reads the counts. What only looks odd is a warning, because counts may be
// of more steps, and a trace of fewer ranks and layers.
func (r *reduction) checkRecorded() error {
	rec := &r.options.Recorded
	if len(rec.Load) == 0 {
		return nil
	}
	r.trace.Warnings = append(r.trace.Warnings, rec.Warnings...)
	seen := r.observedExperts()
	fitOwners := func() error { return r.checkRecordedOwners(seen) }
	for _, check := range []func() error{r.checkRecordedRanks, r.checkRecordedGate, r.checkRecordedLayers, fitOwners} {
		if err := check(); err != nil {
			return err
		}
	}
	r.warnIdleExperts(seen)
	return nil
}

// observedExperts lists the experts with kernels of their own, each once, in order.
func (r *reduction) observedExperts() []observedExpert {
	seen := map[observedExpert]bool{}
	for _, p := range r.ranks {
		for i := range p.events {
			if at := &p.of.locations[p.events[i].location]; at.Expert != None && at.Layer != None {
				seen[observedExpert{at.Layer, at.Expert, int32(p.rank.Rank)}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b observedExpert) int {
		return slices.Compare([]int32{a.layer, a.expert, a.rank}, []int32{b.layer, b.expert, b.rank})
	})
}

// checkRecordedRanks compares the numbers of ranks.
func (r *reduction) checkRecordedRanks() error {
	world := 0
	for _, d := range r.exports {
		world = max(world, d.world)
	}
	for _, layer := range slices.Sorted(maps.Keys(r.options.Recorded.Layout)) {
		ranks := r.options.Recorded.Layout[layer].Ranks()
		if last := r.ranks[len(r.ranks)-1].rank; last.Rank >= ranks {
			return fmt.Errorf("%w: counts of %s, the trace has rank %d (%q)", ErrCounts, quantity.Count(ranks, "rank"), last.Rank, last.Export)
		}
		if world > 0 && world != ranks {
			r.warn("counts_ranks", "", fmt.Sprintf("the recorded counts have %s, the run had %d", quantity.Count(ranks, "rank"), world))
			return nil
		}
	}
	return nil
}

// gateKernel finds the number of experts among the template arguments of the gate
// that TensorRT-LLM, vLLM and SGLang share: (type,) values per thread, experts, ….
// Source: vllm csrc/moe/topk_softmax_kernels.cu, sgl-kernel/csrc/moe/moe_topk_*_kernels.cu.
var gateKernel = regexp.MustCompile(`(?:^|::)topkGating(?:Softmax|Sigmoid)<(?:[A-Za-z_][\w:]*, ?)?\d+, ?(\d+)[,>]`)

// checkRecordedGate compares the number of experts with what the gate's kernels are made
// for. Several models may run, one to draft for the other: one of them is enough.
func (r *reduction) checkRecordedGate() error {
	made := map[int]bool{}
	for _, k := range r.trace.Kernels {
		if m := gateKernel.FindStringSubmatch(kernel.NormalName(k.Name)); m != nil {
			experts, _ := strconv.Atoi(m[1])
			made[experts] = true
		}
	}
	for _, layer := range slices.Sorted(maps.Keys(r.options.Recorded.Load)) {
		if experts := len(r.options.Recorded.Load[layer].PerExpert); len(made) > 0 && !made[experts] {
			return fmt.Errorf("%w: counts of %s, the top-k kernel in the trace is compiled for %s", ErrCounts, quantity.Count(experts, "expert"), numberList(slices.Collect(maps.Keys(made))))
		}
	}
	return nil
}

// checkRecordedOwners looks for experts that the counts do not have, and for experts that
// ran on a rank that does not own them.
func (r *reduction) checkRecordedOwners(seen []observedExpert) error {
	for _, s := range seen {
		load, ok := r.options.Recorded.Load[int(s.layer)]
		if !ok {
			continue
		}
		if experts := len(load.PerExpert); int(s.expert) >= experts {
			return fmt.Errorf("%w: counts of %s, expert %d of layer %d ran on rank %d", ErrCounts, quantity.Count(experts, "expert"), s.expert, s.layer, s.rank)
		}
		layout, placed := r.options.Recorded.Layout[int(s.layer)]
		if !placed || int(s.expert) >= layout.Experts() {
			continue
		}
		var owners []int
		for _, p := range layout.Places(int(s.expert)) {
			owners = append(owners, p.Rank)
		}
		if !slices.Contains(owners, int(s.rank)) {
			return fmt.Errorf("%w: with %s on %s, expert %d of layer %d belongs to rank %s, in the trace it ran on rank %d",
				ErrCounts, quantity.Count(layout.Experts(), "expert"), quantity.Count(layout.Ranks(), "rank"), s.expert, s.layer, numberList(owners), s.rank)
		}
	}
	return nil
}

// warnIdleExperts warns where experts with much of the recorded load never ran on the
// ranks that are there, and where experts ran that have none.
func (r *reduction) warnIdleExperts(seen []observedExpert) {
	present := map[int]bool{}
	for _, p := range r.ranks {
		present[p.rank.Rank] = true
	}
	ran := map[[2]int]bool{}
	layers := map[int]bool{}
	for _, s := range seen {
		ran[[2]int{int(s.layer), int(s.expert)}] = true
		layers[int(s.layer)] = true
	}
	for _, layer := range slices.Sorted(maps.Keys(layers)) {
		load, layout := r.options.Recorded.Load[layer], r.options.Recorded.Layout[layer]
		var total, idle int64
		unused, unloaded := 0, 0
		for e, slots := range load.PerExpert {
			if e < layout.Experts() && !slices.ContainsFunc(layout.Places(e), func(p router.Place) bool { return present[p.Rank] }) {
				continue
			}
			total += slots
			switch {
			case slots > 0 && !ran[[2]int{layer, e}]:
				idle += slots
				unused++
			case slots == 0 && ran[[2]int{layer, e}]:
				unloaded++
			}
		}
		if float64(idle) > idleShare*float64(total) {
			r.warn("counts_idle", "", fmt.Sprintf("layer %d: %s with %s of the recorded load never ran in the trace: the counts may be of another run or other steps",
				layer, quantity.Count(unused, "expert"), quantity.Percent(float64(idle)/float64(total))))
		}
		if unloaded > 0 {
			r.warn("counts_idle", "", fmt.Sprintf("layer %d: %s without recorded load ran in the trace: the counts are of another run or other steps", layer, quantity.Count(unloaded, "expert")))
		}
	}
}

// numberList writes 0, 1, 2 and cuts long lists.
func numberList(numbers []int) string {
	slices.Sort(numbers)
	const most = 8
	var words []string
	for i, n := range numbers {
		if i == most {
			return fmt.Sprintf("%s and %d more", strings.Join(words, ", "), len(numbers)-most)
		}
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, ", ")
}
