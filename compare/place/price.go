package place

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// TimeChange is the predicted change of time from the baseline to a placement: the
// time of the slowest rank, added over layers, after less before, over Of. Low and High
// are the least and the largest over the judged windows and over the fits of the cost
// without one group each, widened by Error: they do not hold what the cost leaves out.
type TimeChange struct {
	Estimate router.Number `json:"estimate"` // of the whole fit, mean over windows
	Low      router.Number `json:"low"`
	High     router.Number `json:"high"`
	Of       string        `json:"of"`       // "step time", or "expert time" where the step's is not known
	Basis    string        `json:"basis"`    // always "inferred"
	Windows  int           `json:"windows"`  // that the interval is over
	Fits     int           `json:"fits"`     // likewise
	Error    router.Number `json:"error"`    // that 95 % of held-out changes err by, of the time before, over Of
	SavedNS  router.Number `json:"saved_ns"` // per step, mean over windows
	AtMost   bool          `json:"at_most"`  // ranks wait mostly for late hosts: Cost.LateHosts
	traced   bool          // the cost is of one run with its counts
}

// change compares the scores of windows with load, nil without a cost or such a window.
func (c *Cost) change(before, after []score) *TimeChange {
	windows := 0
	for _, s := range after {
		if s.ns != nil {
			windows++
		}
	}
	if c == nil || windows == 0 {
		return nil
	}
	n := router.Number(windows)
	t := &TimeChange{Low: router.Number(math.Inf(1)), High: router.Number(math.Inf(-1)), Of: "step time",
		Basis: "inferred", Windows: windows, Fits: len(c.fits) - 1, AtMost: c.LateHosts,
		traced: c.Basis != "cost table"}
	all := router.Number(0) // that could be saved
	for i := range after {
		if after[i].ns == nil {
			continue
		}
		for f := range c.fits {
			was, saved, of := router.Number(before[i].ns[f]), router.Number(before[i].ns[f]-after[i].ns[f]), c.StepNS
			if !of.Defined() {
				t.Of, of = "expert time", was
			}
			if f == 0 {
				t.Estimate, t.SavedNS, t.Error = t.Estimate-saved/of/n, t.SavedNS+saved/n, t.Error+c.off*was/of/n
			}
			t.Low, t.High, all = min(t.Low, -saved/of), max(t.High, -saved/of), max(all, was/of)
		}
	}
	t.Low, t.High = max(t.Low-t.Error, -all), t.High+t.Error
	return t
}

// Price is what a placement costs, and where it begins to pay. Numbers whose inputs are
// not known are undefined.
type Price struct {
	ReplicaBytes router.Number `json:"replica_bytes_per_rank_and_layer"` // of redundant experts
	MemoryBytes  router.Number `json:"replica_bytes_per_rank"`           // in all layers
	// that ranks lack in the baseline, over ranks and layers
	Moved      int           `json:"moved_experts"`
	MovedBytes router.Number `json:"moved_bytes"`
	MoveNS     router.Number `json:"move_ns"` // of the rank that loads most
	// undefined also where the interval of the time change reaches 0
	PaidBackAfter router.Number `json:"paid_back_after_steps"`
	// BreakEvenTokens is the least power of two of tokens in a step of all ranks from which
	// on the placement saves time on the judged windows together, of those that a cost table
	// measured; undefined where it saves time at any number, or at none, and for the cost of
	// a trace, which measured one number.
	BreakEvenTokens router.Number `json:"break_even_tokens"`
}

func (o Options) price(at Plan, flat, placed plan, judged []Window, by []plan) Price {
	perRank, moved := loads(flat, placed, at.Ranks)
	expert := router.Undefined()
	if o.ExpertBytes > 0 {
		expert = router.Number(o.ExpertBytes)
	}
	p := Price{Moved: moved, MovedBytes: expert * router.Number(moved), MoveNS: o.moveNS(perRank),
		ReplicaBytes:  expert * router.Number(at.Redundant) / router.Number(at.Ranks),
		PaidBackAfter: router.Undefined(), BreakEvenTokens: o.costOn(at.Ranks).breakEven(flat, judged, by)}
	p.MemoryBytes = p.ReplicaBytes * router.Number(len(placed.layouts))
	return p
}

// moveNS is the time of the rank that loads most, undefined where that is not known.
func (o Options) moveNS(perRank []int) router.Number {
	if o.ExpertBytes == 0 || o.Bandwidth == 0 {
		return router.Undefined()
	}
	return router.Number(1e9 * o.ExpertBytes * float64(slices.Max(perRank)) / o.Bandwidth)
}

// costOn is the cost where it holds for so many ranks, else nil.
func (o Options) costOn(ranks int) *Cost {
	if o.Cost == nil || o.Cost.Ranks != 0 && o.Cost.Ranks != ranks {
		return nil
	}
	return o.Cost
}

// breakEven tries the powers of two that a table measured. Each window is judged by a plan of
// its own.
func (c *Cost) breakEven(flat plan, judged []Window, by []plan) router.Number {
	if c == nil || c.TopK == 0 || !c.Slots.Defined() || len(judged) == 0 || !(c.MostTokens > c.LeastTokens) {
		return router.Undefined()
	}
	first, last := int(math.Exp2(math.Ceil(math.Log2(c.LeastTokens.Float64())))), int(c.MostTokens)
	saves := func(tokens int) bool {
		var ns float64
		whole := *c
		whole.fits = [][3]float64{c.fitAt(float64(tokens))}
		for i, w := range judged {
			loads := w.record.ByLayer()
			for _, layer := range slices.Sorted(maps.Keys(loads)) { // in order: the sign of a sum may depend on it
				load := loads[layer].PerExpert
				if total := loads[layer].Total(); total > 0 { // else there may be no layout
					scale := float64(tokens*c.TopK) / float64(total)
					ns += whole.slowest(flat.layouts[layer], load, scale, true)[0] -
						whole.slowest(by[i].layouts[layer], load, scale, true)[0]
				}
			}
		}
		return ns > 0
	}
	from := 0
	for tokens := 1 << (bits.Len(uint(last)) - 1); tokens >= first && saves(tokens); tokens /= 2 {
		from = tokens
	}
	if from <= first {
		return router.Undefined()
	}
	return router.Number(from)
}
