package page

import "slices"

// word is an entry of the page's glossary, with the kinds of results that need it.
type word struct {
	Name, Meaning string
	kinds         []string
}

// words are the definitions that the page's results need.
func (p Page) words() (out []word) {
	needed := func(w word) bool {
		return slices.ContainsFunc(p.programs, func(part program) bool {
			return slices.ContainsFunc(part.Sections, func(s section) bool { return slices.Contains(w.kinds, s.kind) })
		})
	}
	for _, w := range words {
		if needed(w) {
			out = append(out, w)
		}
	}
	return out
}

// words are the definitions a reader needs to use the page's numbers. They say
// what the packages compute, in the same words.
var words = []word{
	{"load, slot", "A slot is one (token, chosen expert) pair: T tokens with top-k make T·k slots. Load is slots per " +
		"expert or per rank.", []string{"counts", "place", "trace", "compare"}},
	{"max/mean and imbalance",
		"The largest load or time divided by the mean; at least 1. Imbalance is max/mean − 1 as a percentage. Both are " +
			"computed per step and layer, then averaged over the steps that count, so a hot rank that moves does not cancel.",
		[]string{"counts", "place", "trace", "compare", "cache"}},
	{"floor", "The least max/mean that whole slots can reach: ⌈slots/n⌉·n/slots. A flag compares load with its floor.",
		[]string{"counts", "trace", "compare", "cache"}},
	{"null", "max/mean of uniformly random routing to distinct experts at the same shape over as many steps, 95th " +
		"percentile. Load above it is more than chance; at small batches chance alone exceeds 10 %.",
		[]string{"counts", "trace"}},
	{"learned routing, balanced routing",
		"The two arms, called normal and perfect in commands and files. The balanced router computes the learned one, " +
			"discards its result, and spreads tokens evenly: the text is garbage, the timing that of a balanced model.",
		[]string{"bench", "compare", "cache", "trace"}},
	{"observed, inferred, allocated, recorded",
		"Observed time is that of kernels in a range or operator of their own. Inferred layers are found from the " +
			"repetition of kernels. Allocated time splits a grouped kernel by load: a model, not a measurement. Recorded load " +
			"was counted by the engine.", []string{"trace", "compare"}},
	{"straggler loss", "Maximum − mean over ranks of compute time in a layer and step. Collectives are excluded: they " +
		"hold the wait for the last rank. The slowest rank in compute need not be the last to arrive.",
		[]string{"trace", "compare"}},
	{"wait and transfer",
		"Time of a collective before and after its last rank arrived. The last rank computed longest, ran other kernels, " +
			"or launched late; adding the wait to the loss would double-count.", []string{"trace", "compare"}},
	{"gain", "Throughput of balanced routing / learned routing − 1, per pair of launches. Mean of the two orders' mean " +
		"log ratios with Student's t interval (crossover t), which takes out what running second costs. " +
		"One launch is one observation.", []string{"bench", "compare"}},
	{"even ranks, even experts", "Even ranks: no rank has more expert work than another, which ends the straggler " +
		"loss and is all that a placement can do. Even experts: no expert has more tokens than another, so GEMMs have one size " +
		"and run faster, which only balanced routing does.", []string{"compare"}},
	{"predicted gain", "Compute that balance saves per step / step time of balanced routing, from traces of one launch " +
		"of each arm. Only a paired campaign gives a verdict.", []string{"compare", "trace"}},
	{"bound", "gain ≤ 1/(1 − f + f·b) − 1 for a share f of the step in expert compute and balancedness b = mean/max. It " +
		"covers expert compute only.", []string{"compare"}},
}
