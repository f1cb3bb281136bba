package page

// word is an entry of the page's glossary.
type word struct{ Name, Meaning string }

// words are the definitions a reader needs to use the page's numbers. They say
// what the packages compute, in the same words.
var words = []word{
	{"load, slot", "A slot is one token times one of its chosen experts: T tokens with top-k make T·k slots. The load of an expert or rank is its slots."},
	{"max/mean and imbalance", "The largest of some loads or times divided by their mean; at least 1. Imbalance is max/mean − 1 as a percentage. It is computed per step and layer first, then averaged over steps, so that a hot rank that moves does not cancel."},
	{"floor", "The least max/mean that any assignment of whole slots can reach: ⌈slots/n⌉·n/slots. An imbalance is flagged for what it has above its floor."},
	{"null", "What uniformly random routing of distinct experts gives at the same shape over as many steps, as its 95th percentile. Load above the null is more than chance; at small batches chance alone exceeds 10 %."},
	{"observed, allocated, recorded", "Observed times are those of kernels in a range of their own. Allocated times split a shared kernel by load: a model, not a measurement. Recorded load is what the engine counted."},
	{"straggler loss", "Maximum minus mean over ranks of compute time in a layer and step. Time in collectives is left out, because it holds the wait for that same slowest rank."},
	{"wait and transfer", "A collective's time before its last rank arrived, and after. Waiting is reported and never added to the straggler loss."},
	{"gain", "Throughput of the perfect arm over that of the normal arm, minus 1, per pair of launches. The estimate is Hodges and Lehmann's, the interval that of the signed-rank test, exact to 200 pairs; both on the log scale. One launch is one observation."},
	{"ceiling", "Perfect routing is an upper bound on what balancing can win: it also changes what the ranks exchange, and its output is not usable."},
}
