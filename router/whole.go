package router

import (
	"encoding/json"
	"strconv"
)

// Whole is a whole number, 0 or more, that may be undefined: the number of a
// layer, a step or a rank, or a count that was not stated. Undefined is negative in
// Go, as a rule None, and null in JSON, in both directions. Unlike a Number it can
// be compared with itself, and so be part of a key.
type Whole int64

// None is the Whole that has no value.
const None = -1

// Known is a number of which 0 means that it was not stated.
func Known(n int) Whole {
	if n == 0 {
		return None
	}
	return Whole(n)
}

// Stated is a number of which 0 means that it was not stated: null in JSON, in both directions.
type Stated int64

// MarshalJSON writes null for 0.
func (s Stated) MarshalJSON() ([]byte, error) {
	return Known(int(s)).MarshalJSON()
}

// Defined reports whether w has a value.
func (w Whole) Defined() bool { return w >= 0 }

// MarshalJSON writes null where w is undefined.
func (w Whole) MarshalJSON() ([]byte, error) {
	if !w.Defined() {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(w), 10), nil
}

// UnmarshalJSON reads what MarshalJSON wrote: null becomes None, and so does any
// number below 0.
func (w *Whole) UnmarshalJSON(b []byte) error {
	v := int64(None)
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*w = Whole(max(v, None))
	return nil
}
