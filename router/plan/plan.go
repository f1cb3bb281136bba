package plan

import "github.com/moebalance/moebalance/router"

// Problem is what a plan has to solve: the routing of one layer in one step.
type Problem struct {
	Shape  router.Shape
	Layout router.Layout
	Mode   router.Mode
	// Tokens is the number of tokens each rank holds, one entry per rank,
	// unequal ones and zeros included. In TEP mode all entries are equal and
	// mean the same tokens.
	Tokens []int
	// Layer shifts the plan so that remainders do not pile up on the same
	// experts in every layer. Layer 0 is unshifted.
	Layer int
}

// Plan is a deterministic assignment of slots to experts.
type Plan interface {
	// Name is the algorithm with its version, such as "diagonal/2": the same
	// name and problem give the same assignment for ever.
	Name() string
	// Fill writes the experts of every token of a rank, row-major
	// [Tokens[rank], TopK], into dst, which must have exactly that length.
	// No token gets an expert twice. Fill may be called for any rank in any
	// order, also from several goroutines.
	Fill(dst []int32, rank int)
}

// Periodic is a plan that takes any number of tokens from the rows of one table: Fill
// takes as many rows as it has room for, and begins again behind the last.
type Periodic interface {
	Plan
	Extent() Extent
}

// Extent is how the layers and tokens of a periodic plan take the rows of its table. Token t
// of layer l takes row
//
//	(l mod Layers)·n + (t + l·Period) mod n
//
// of n = Rows/Layers for a layer: in a balanced plan, which has one table for all layers,
// row (t + l·Period) mod Rows.
type Extent struct {
	Rows   int `json:"rows"`
	Period int `json:"period"` // steps after which loads are level; 0 where none is known
	Layers int `json:"layers"`
}
