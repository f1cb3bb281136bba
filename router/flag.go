package router

// Flagged is the rule by which a load or a time counts as imbalanced. Both of
// these must hold, with m = max/mean:
//
//	Above(m, floor, threshold)   the imbalance is beyond the threshold, and
//	m > nullP95                  uniformly random routing is this uneven less than once in twenty times
//
// The null must be for m itself: where m is a mean over steps, for such a mean
// (see MeanOf). An undefined nullP95 is not compared.
func Flagged(maxOverMean, floor, nullP95 Number, threshold float64) bool {
	return Above(maxOverMean, floor, threshold) && !(nullP95.Defined() && !exceeds(maxOverMean, nullP95))
}

// Above reports whether a max/mean is more than a threshold (0.10 for 10 %) above
// the best that indivisible slots allow:
//
//	maxOverMean > max(1, floor)·(1 + threshold)
//
// Exactly at the threshold is not above it. An undefined floor, as of times, is the
// ideal 1; an undefined maxOverMean is never above.
func Above(maxOverMean, floor Number, threshold float64) bool {
	best := Number(1)
	if floor.Defined() {
		best = max(best, floor)
	}
	return exceeds(maxOverMean, best*Number(1+threshold))
}

// exceeds is a > b for ratios of counts and means of such, whose last digits are
// rounding: the mean of 21 steps at 1.1 is 1.1000000000000003. One slot in a
// billion moves a ratio by more than what is let pass.
func exceeds(a, b Number) bool { return a-b > 1e-12*b }
