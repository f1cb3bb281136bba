package router

import (
	"encoding/json"
	"math"
	"strconv"
)

// Number is a real number that may be undefined, such as the mean over no
// layers. Undefined is NaN in Go and null in JSON, in both directions, so that
// "unknown" can never be read back as zero.
type Number float64

// Undefined is the Number that has no value.
func Undefined() Number { return Number(math.NaN()) }

// Defined reports whether n has a finite value. Infinities are not defined: no
// quantity of this tool is infinite, and JSON cannot carry one.
func (n Number) Defined() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON writes full precision, and null where n is undefined.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Defined() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads what MarshalJSON wrote: null becomes undefined.
func (n *Number) UnmarshalJSON(b []byte) error {
	v := math.NaN()
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*n = Number(v)
	return nil
}

// Float64 is n as a plain float, NaN where it is undefined.
func (n Number) Float64() float64 { return float64(n) }

// OptInt is a whole number, 0 or more, that may be undefined: the number of a
// layer, a step or a rank, or a count that was not stated. Undefined is negative in
// Go, as a rule NoID, and null in JSON, in both directions. Unlike a Number it can
// be compared with itself, and so be part of a key.
type OptInt int64

// NoID is the OptInt that has no value.
const NoID = -1

// Known is a number of which 0 means that it was not stated.
func Known(n int) OptInt {
	if n == 0 {
		return NoID
	}
	return OptInt(n)
}

// Stated is a number of which 0 means that it was not stated: null in JSON, in both directions.
type Stated int64

// MarshalJSON writes null for 0.
func (s Stated) MarshalJSON() ([]byte, error) {
	return Known(int(s)).MarshalJSON()
}

// Defined reports whether w has a value.
func (w OptInt) Defined() bool { return w >= 0 }

// MarshalJSON writes null where w is undefined.
func (w OptInt) MarshalJSON() ([]byte, error) {
	if !w.Defined() {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(w), 10), nil
}

// UnmarshalJSON reads what MarshalJSON wrote: null becomes NoID, and so does any
// number below 0.
func (w *OptInt) UnmarshalJSON(b []byte) error {
	v := int64(NoID)
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*w = OptInt(max(v, NoID))
	return nil
}

// Flagged is the rule by which a load or a time counts as imbalanced. Both of
// these must hold, with m = max/mean:
//
//	Above(m, floor, threshold)   the imbalance is beyond the threshold, and
//	m > nullP95                  uniformly random routing is this uneven less than once in twenty times
//
// The null is that of m itself: where m is a mean over steps, of such a mean
// (see MeanOf). An undefined nullP95 is not compared.
func Flagged(maxOverMean, floor, nullP95 Number, threshold float64) bool {
	return Above(maxOverMean, floor, threshold) && !(nullP95.Defined() && !exceeds(maxOverMean, nullP95))
}

// Above reports whether a max/mean is more than a threshold (0.10 for 10 %) above
// the best that indivisible slots allow:
//
//	maxOverMean > max(1, floor)·(1 + threshold)
//
// Exactly at the threshold is not above it. An undefined floor (of a time
// in fewer than three steps) is the ideal 1; an undefined maxOverMean is never above.
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
