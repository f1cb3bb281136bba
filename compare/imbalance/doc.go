// Package imbalance computes how uneven ranks and experts are, in time and in load.
// Every verb and figure takes these numbers from here, so that two outputs of one
// input agree.
//
// One rule says which steps of a recording count (New): those that every rank recorded
// whole (see excludePartial), of one kind (Kinds), the one with most expert time. Leading
// steps whose GPU time, but not their expert compute, exceeds 1.5× the median of the
// later steps are excluded as warm-up.
//
// With max and mean over parts, ranks or experts, and Σ over the steps s that count:
//
//	max/mean(layer) of time = Σ_s max / Σ_s mean, over layers likewise
//	max/mean(layer) of load = mean over steps of (max / mean), over layers their mean
//	imbalance               = max/mean − 1
//	straggler loss(layer)   = mean over steps of (max − mean over ranks of compute time)
//
// So a step counts by its time, and a loss of expert time is its imbalance × its mean.
// The maximum is taken within each step: a hot rank that alternates does not cancel.
// Time in collectives is mostly waiting for the slowest rank and is no
// compute time. A layer is flagged where max/mean exceeds its floor by the threshold
// and, for load, the 95th percentile of what random routing gives (router.Flagged). The
// floor of load is what whole slots allow. Time has none: what a rank takes longer in a step, others wait
// for, whatever the reason.
//
// The package stands on plain values and reads no file.
package imbalance
