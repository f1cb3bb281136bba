// Package workload is a small expert-parallel mixture-of-experts model that runs
// on CPU cores, so that the whole of moebalance can be tried, and tested, on a
// machine without a GPU. It does the real work of such a model and measures it;
// nothing in it sleeps or pretends.
//
// # The model
//
// Every rank has tokens of its own. In each layer it normalises their hidden
// states, computes the gate, picks experts with the exact mathematics of a
// routing method, packs one row per slot for the expert's owner (dispatch), runs
// the experts it owns on the rows of all ranks (experts), and adds the weighted
// results to the hidden states (combine), which the next layer starts from. The
// ranks meet at a barrier after dispatch, experts and combine. With balanced
// logits handed in, the gate is still computed and its result is then replaced,
// as TensorRT-LLM does under ENABLE_PERFECT_ROUTER=1.
//
// # Why the busiest rank decides
//
// Ranks are goroutines. A rank stands for a fixed share of a machine: while it
// waits at a barrier, nobody else may use its share. By the wall clock that holds
// as long as every rank has a core of its own that nobody else wants, and only
// then: with more ranks than cores the waiting ranks' cores are given to the
// busy ones, the step takes total work over cores, and imbalance costs nothing.
// Result.RanksPerCore says when there are more ranks than cores. For the same
// reason a rank may not borrow idle cores through gonum, whose matrix products go
// parallel when they are large: product works in tiles that stay below that size.
//
// The CPU clock gives every rank its share on any machine. Each rank has a thread
// of its own, the processor time that the thread spends in a phase is measured,
// and a phase takes as long as the rank that spent most: what the wall clock
// would show if every rank had a core to itself. The work and its times are
// real; that the ranks run side by side, and that meeting costs nothing, is
// assumed, as it is wherever ranks are processors of their own. It is the
// default, because the answer must not depend on what else the machine does; the
// wall clock is there to check it with on an idle machine with a core per rank.
//
// The routing is deterministic: the same configuration gives the same counts.
// Only the times vary.
package workload
