package router

import (
	"cmp"
	"encoding/json"
	"strconv"
)

// OptInt is a whole number, 0 or more, that may be undefined: the number of a
// layer, a step or a rank, or a count that was not stated. Undefined is negative in
// Go, as a rule NoID, and null in JSON, in both directions. Unlike a Number it can
// be compared with itself, and so be part of a key.
type OptInt int64

// NoID is the OptInt that has no value.
const NoID = -1

// Known is a number that was not stated if it is 0: Known(3) is 3, Known(0) is NoID.
func Known(n int) OptInt {
	return OptInt(cmp.Or(n, NoID))
}

// Stated is a number that was not stated if it is 0, which is null in JSON.
type Stated int64

// MarshalJSON writes null for 0.
func (s Stated) MarshalJSON() ([]byte, error) {
	return Known(int(s)).MarshalJSON()
}

// Defined reports whether o has a value.
func (o OptInt) Defined() bool { return o >= 0 }

// MarshalJSON writes null where o is undefined.
func (o OptInt) MarshalJSON() ([]byte, error) {
	if !o.Defined() {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(o), 10), nil
}

// UnmarshalJSON reads what MarshalJSON wrote: null becomes NoID, and so does any
// number below 0.
func (o *OptInt) UnmarshalJSON(b []byte) error {
	v := int64(NoID)
	err := json.Unmarshal(b, &v)
	*o = OptInt(max(v, NoID))
	return err
}
