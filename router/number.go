package router

import (
	"encoding/json"
	"math"
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
	err := json.Unmarshal(b, &v)
	*n = Number(v)
	return err
}

// Float64 is n as a plain float, NaN where it is undefined.
func (n Number) Float64() float64 { return float64(n) }
