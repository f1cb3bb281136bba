// Package imbalance computes how uneven ranks and experts are, in time and in load.
// Every verb and figure takes these numbers from here, so that two outputs of one
// input agree.
//
// One rule says which steps of a recording count (New): a step counts where every
// rank has kernels in it, and every layer that one rank ran was run by all ranks
// that have the layer at all; leading steps whose GPU time, but not their
// expert compute, exceeds 1.5× the median of the later steps are excluded as warm-up.
//
// The statistics are per step and layer first, then over steps, then over layers:
//
//	max/mean(layer)      = mean over steps of (max over parts / mean over parts)
//	imbalance            = max/mean − 1
//	balancedness(layer)  = mean over steps of (mean / max)
//	straggler loss(layer) = mean over steps of (max − mean over ranks of compute time)
//
// They are never ratios of sums over steps, in which a hot rank that alternates
// would cancel. Time in collectives is mostly waiting for the slowest rank and is no
// compute time. A layer is flagged where max/mean exceeds its floor by the threshold
// and, for load, the 95th percentile of what random routing gives (router.Flagged).
//
// The package stands on plain values and reads no file.
package imbalance
