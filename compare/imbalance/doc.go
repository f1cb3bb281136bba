// Package imbalance computes how uneven ranks and experts are, in time and in load, and which steps of a recording
// count. Every verb and figure takes these numbers from here, so that two outputs of one input agree.
//
//	word         meaning                                         where
//	part         a rank or an expert: what time and load are     Row.Level, Row.Parts
//	             spread over
//	load         slots per part, as an engine counted them       Row of Load
//	time         expert time per part in nanoseconds, see Of     Row of Time, Times
//	share        a part of a whole in [0, 1]                     Times.OutsideShare
//	max/mean     the largest part over the mean part, ≥ 1        Row.MaxOverMean
//	imbalance    max/mean − 1                                    Row.Imbalance
//	loss         Σ (max − mean), nanoseconds per step            Times.Loss
//
// Time passes through these forms:
//
//	Sum, Cell       kernel time, of one rank, step, layer and phase, from package trace
//	Times           expert time by layer, step and rank, and which steps count
//	router.Balance  one layer in one step: max/mean over its parts
//	Row             one layer over the steps that count
//	Summary         all layers
//
// Load begins as router.Balance, from package counts.
//
// One rule says which steps count (New): steps that every rank recorded whole (see excludePartial), of one kind
// (Classify, OfKind). Leading steps whose GPU time, but not their expert compute, exceeds
// 1.5× the median of the later steps are excluded as warm-up.
//
// With max and mean over parts, and Σ over the steps s that count:
//
//	max/mean(layer) of time = Σ_s max / Σ_s mean, over layers likewise
//	max/mean(layer) of load = mean over steps of (max / mean), over layers their mean
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
