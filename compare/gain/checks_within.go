package gain

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// The names of the checks of launches that hold all arms.
const (
	CheckBlocks   = "complete_blocks"
	CheckSegments = "outlying_segments"
)

// outlierLevel is how often a campaign without an outlier is said to have one.
const outlierLevel = 0.02

// checksWithin are those of the order within launches, and of what falls out.
func (c Campaign) checksWithin(complete []pairResult, launches []LaunchGain, outliers Check) []Check {
	return []Check{checkBlocks(launches), checkReversed(launches), checkOrderWithin(complete, c.Confidence),
		c.checkDrift(complete), outliers, checkSegments(complete), checkRepeats(complete)}
}

// checkBlocks counts the blocks, and those that drop out.
func checkBlocks(launches []LaunchGain) Check {
	var without []int // launches with a block that drops out
	blocks, open := 0, 0
	for _, l := range launches {
		n := 0
		for _, b := range l.Blocks {
			if b.Status != PairComplete {
				n++
			}
		}
		if n > 0 {
			without = append(without, l.Launch)
		}
		blocks, open = blocks+len(l.Blocks), open+n
	}
	if open > 0 {
		return NewCheck(CheckBlocks, Warn, "open", "open", open, "blocks", blocks, "launches", without)
	}
	return NewCheck(CheckBlocks, Pass, "all", "blocks", blocks, "launches", len(launches))
}

// checkReversed wants each block to be an order and its reverse, in which drift cancels.
func checkReversed(launches []LaunchGain) Check {
	var uneven []int // launches
	first := map[byte]int{}
	for _, l := range launches {
		for _, b := range l.Blocks {
			if b.Status != PairComplete {
				continue
			}
			first[b.Order[0]]++
			if !even(b.Order) && !slices.Contains(uneven, l.Launch) {
				uneven = append(uneven, l.Launch)
			}
		}
	}
	switch {
	case len(first) == 0:
		return NewCheck(CheckOrder, Unknown, "no_block")
	case len(uneven) > 0:
		return NewCheck(CheckOrder, Warn, "not_reversed", "launches", uneven)
	}
	return NewCheck(CheckOrder, Pass, "reversed", "normal_first", first['A'], "perfect_first", first['B'])
}

// even reports whether both arms of an order have the same mean position.
func even(order string) bool {
	sum := 0
	for i, arm := range order {
		if arm == 'A' {
			sum += 2*i - (len(order) - 1)
		}
	}
	return sum == 0
}

// checkOrderWithin asks whether running second within half a block changes the value.
func checkOrderWithin(complete []pairResult, confidence float64) Check {
	var effects, blocks []float64 // by launch, and by block of the last one
	for _, s := range complete {
		blocks = nil
		for _, halves := range s.blocks {
			var logs logGains
			for _, half := range halves {
				logs.add(half.log, half.pair.Order)
			}
			if logs.ordered() {
				blocks = append(blocks, (mean(logs.normalFirst)-mean(logs.perfectFirst))/2)
			}
		}
		if len(blocks) > 0 {
			effects = append(effects, stats.Center(blocks))
		}
	}
	if len(effects) == 1 {
		effects = blocks
	}
	return orderEffect(stats.PairedT(effects, confidence))
}

// outlyingLaunches asks whether the gain of a launch is far from those of the others.
func (c Campaign) outlyingLaunches(complete []pairResult) (check Check, outliers []Outlier) {
	logs := logsOf(complete, pairResult.logGain).all()
	if len(logs) < 3 {
		return NewCheck(CheckOutliers, Unknown, "few_launches"), nil
	}
	for i, far := range stats.Outlying(logs, outlierLevel) {
		if far {
			others := slices.Delete(slices.Clone(logs), i, i+1)
			outliers = append(outliers, Outlier{Launch: router.OptInt(complete[i].pair.Pair), Pair: complete[i].pair.Pair,
				Point: router.Number(c.point), Change: fraction(logs[i] - mean(others))})
		}
	}
	if len(outliers) > 0 {
		launches, _, changes := columns(outliers)
		return NewCheck(CheckOutliers, Warn, "gains", "launches", launches, "changes", changes), outliers
	}
	return NewCheck(CheckOutliers, Pass, "no_launch"), nil
}

// segmentLimit is that of so many segments, in launches of so many blocks: the fewer there
// are, the more their own median takes of their spread. Simulated, so that about 2 % of
// campaigns without outliers have one.
func segmentLimit(segments, blocks int) float64 { return 4 + 5/float64(blocks) + 24/float64(segments) }

// checkSegments asks whether a segment is far from the median of its arm in its launch.
func checkSegments(complete []pairResult) Check {
	var groups [][]float64
	var launches []int    // of each segment
	fewest := math.MaxInt // blocks of a launch
	for _, s := range complete {
		fewest = min(fewest, len(s.blocks))
		for arm := range Arms {
			var values []float64
			for half := range s.halves() {
				values, launches = append(values, math.Log(half.launches()[arm].Value)), append(launches, s.pair.Pair)
			}
			groups = append(groups, values)
		}
	}
	if len(launches) == 0 {
		return NewCheck(CheckSegments, Unknown, "few")
	}
	logs, sizes := fromMedians(groups)
	limit := segmentLimit(len(sizes), fewest) * 1.4826 * stats.Median(sizes)
	var far []float64
	var in []int
	for i, size := range sizes {
		if limit > 0 && size > limit {
			far, in = append(far, float64(fraction(logs[i]))), append(in, launches[i])
		}
	}
	if len(far) > 0 {
		return NewCheck(CheckSegments, Warn, "far", "segments", len(far), "launches", set(in), "changes", far)
	}
	return NewCheck(CheckSegments, Pass, "none", "most", math.Expm1(slices.Max(sizes)))
}
