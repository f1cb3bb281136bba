package router

// Flagged is the rule by which a load or a time counts as imbalanced. All of
// these must hold, with m = max/mean and t the threshold (0.10 for 10 %):
//
//	m − 1 > t          the imbalance itself is beyond the threshold,
//	m/floor − 1 > t    it is beyond the threshold even of the best that indivisible slots allow, and
//	m > nullP95        uniformly random routing is this uneven less than once in twenty times
//
// Every comparison is strict: exactly at the threshold is not flagged. An
// undefined floor (a time has none) is the ideal 1; an undefined nullP95 is not
// compared; an undefined m is never flagged.
func Flagged(maxOverMean, floor, nullP95 Number, threshold float64) bool {
	if !maxOverMean.Defined() {
		return false
	}
	m, best := float64(maxOverMean), 1.0
	if floor.Defined() {
		best = max(best, float64(floor))
	}
	return m/best-1 > threshold && !(nullP95.Defined() && m <= float64(nullP95))
}
