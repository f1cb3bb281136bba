// Package workload is a small expert-parallel mixture-of-experts model that runs
// on CPU cores, so that the whole of moebalance can be tried, and tested, on a
// machine without a GPU. It does the real work of such a model and measures it.
//
// # The model
//
// Every rank has tokens of its own. In each layer it computes the gate of their hidden
// states, picks experts with the exact mathematics of a
// routing method (dispatch), runs the experts it owns on the tokens of all ranks
// that chose them (experts), and adds the weighted results to the hidden states
// (combine), which the next layer starts from. The ranks wait for each other after
// each of the three. With balanced logits handed in, the gate is still computed and
// its result is then replaced, as TensorRT-LLM does under ENABLE_PERFECT_ROUTER=1.
//
// # Time
//
// Ranks are goroutines. Each has a thread while it works in a phase, which takes the
// largest processor time of any of them: the wall time if every rank had a core of its own,
// whatever else runs on the machine. Work and times are real; that ranks run in parallel
// and that meeting costs nothing is assumed. For the same reason a rank must not use idle
// cores through gonum, which runs large matrix products in parallel.
//
// The routing is deterministic: the same configuration gives the same counts. Only the
// times vary.
package workload
