package counts

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

// maxDimensions is more than any axes have.
const maxDimensions = 4

// numbers reads lists within lists, all of one shape, of whole numbers, which tools also
// write as 12.0: [[1, 2], [3, 4]] → shape 2 × 2.
func numbers(text []byte) (a tensor.Array, err error) {
	unlike := func() error {
		return fmt.Errorf("want lists of counts, layers × experts, of one depth, have %.60s", text)
	}
	a.Values = make([]int64, 0, 1+bytes.Count(text, []byte(",")))
	var items []int64 // of each list that is open, so far
	for at := 0; at < len(text); {
		depth := len(items)
		switch b := text[at]; {
		case b == '[':
			if depth > 0 {
				items[depth-1]++
			}
			if depth == len(a.Shape) && len(a.Values) == 0 {
				a.Shape = append(a.Shape, -1)
			}
			if depth == len(a.Shape) || depth == 0 && at > 0 {
				return a, unlike()
			}
			if depth == maxDimensions {
				return a, fmt.Errorf("want at most %d dimensions", maxDimensions)
			}
			items = append(items, 0)
			at++
		case b == ']' && depth > 0:
			before, n := &a.Shape[depth-1], items[depth-1]
			if *before >= 0 && *before != n {
				return a, fmt.Errorf("want lists of one length, have %d and %d numbers or lists in two of them", *before, n)
			}
			*before, items = n, items[:depth-1]
			at++
		case b == ',' || b <= ' ':
			at++
		case depth == 0 || depth != len(a.Shape):
			return a, unlike()
		default:
			end := at + 1
			for end < len(text) && text[end] != ',' && text[end] != ']' && text[end] > ' ' {
				end++
			}
			v, err := whole(text[at:end])
			if err != nil {
				return a, err
			}
			a.Values, at = append(a.Values, v), end
			items[depth-1]++
		}
	}
	if len(items) > 0 || len(a.Shape) == 0 {
		return a, unlike()
	}
	return a, nil
}

// whole reads one number.
func whole(text []byte) (int64, error) {
	digits, zeros, _ := bytes.Cut(text, []byte("."))
	if len(bytes.Trim(zeros, "0")) == 0 && len(digits) < 20 { // an error for each 12.0 would take more than the numbers
		if n, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
			return n, nil
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > maxCount {
		return 0, fmt.Errorf("want whole counts below %d, have %.60s", int64(maxCount), text)
	}
	return int64(v), nil
}

// number reads one field of a row.
func number(field, name string, limit int64) (int64, error) {
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		n, err = whole(bytes.TrimSpace([]byte(field)))
	}
	if err != nil || n < 0 || n > limit {
		return 0, fmt.Errorf("want a whole number from 0 to %d as %s, have %q", limit, name, field)
	}
	return n, nil
}

// expertsOf are numbers as expert ids; an id that no model has is an error.
func expertsOf(ids []int64) ([]int32, error) {
	out := make([]int32, len(ids))
	for i, e := range ids {
		if e < 0 || e >= maxExperts {
			return nil, fmt.Errorf("the map names expert %d", e)
		}
		out[i] = int32(e)
	}
	return out, nil
}
