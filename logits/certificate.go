package logits

import "github.com/moebalance/moebalance/router/plan"

// certify proves how even the loads of a periodic entry are for every number of tokens:
// counted from the stored experts of each rank after each row, and carried beyond the last
// row where the table is level there.
func certify(r Record, ids [][]int32) *plan.Proof {
	k := r.Spec.Gate.Shape.TopK
	proof := plan.ProveRows(r.Spec.problem(AnyTokens), r.Rows, r.Period,
		func(source, token int) []int32 { return ids[source][token*k:][:k] })
	return &proof
}
