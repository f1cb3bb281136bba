package page

import "slices"

// word is an entry of the page's glossary, with the kinds of results that need it.
type word struct {
	Name, Meaning string
	sections      []string
}

// Words are the definitions that the page's results need.
func (p Page) Words() []word {
	return slices.DeleteFunc(slices.Clone(words), func(w word) bool {
		return !slices.ContainsFunc(p.Sections, func(s section) bool { return slices.Contains(w.sections, s.ID) })
	})
}

// words are the definitions a reader needs to use the page's numbers. They say
// what the packages compute, in the same words.
var words = []word{
	{"load, slot", "A slot is one (token, chosen expert) pair: T tokens with top-k make T·k slots. Load is slots per " +
		"expert or per rank.", []string{"counts", "place", "trace", "compare"}},
	{"max/mean, imbalance", "The largest load or time divided by the mean, at least 1; imbalance is max/mean − 1 in " +
		"percent. Both are computed per step and layer, then averaged, so a hot rank that moves does not cancel.",
		[]string{"counts", "place", "trace", "compare", "cache"}},
	{"floor, null", "The least max/mean that whole slots can reach, and the most that random routing has in 95 of 100 " +
		"cases at the same shape. At small batches chance alone exceeds 10 %.", []string{"counts", "trace", "cache"}},
	{"learned, balanced routing", "The two arms, called normal and perfect in commands and files. The balanced router " +
		"computes the learned one, discards its result, and spreads tokens evenly: the text is garbage, the timing is not.",
		[]string{"bench", "compare", "cache", "trace"}},
	{"observed, inferred, allocated", "Observed time is of kernels in a range or operator of their own. Inferred layers " +
		"are found from the repetition of kernels. Allocated time splits a grouped kernel by load: a model.",
		[]string{"trace", "compare"}},
	{"loss", "Maximum − mean over ranks of expert time in a layer and step; collectives are excluded.",
		[]string{"trace", "compare"}},
	{"wait, transfer", "Time of a collective before and after its last rank arrived. Adding the wait to the loss would " +
		"count one thing twice.", []string{"trace", "compare"}},
	{"gain", "Throughput of balanced routing over learned routing, less 1; the unit that is repeated is a launch. A " +
		"predicted gain is what balance saves per step over the step with balanced routing.", []string{"bench", "compare"}},
	{"even ranks, even expert sizes", "No rank has more expert work than another, which is all that a placement can do; no " +
		"expert has more tokens than another, so that GEMMs have one size, which only balanced routing does.",
		[]string{"compare"}},
}
