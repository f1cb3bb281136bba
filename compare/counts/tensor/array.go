package tensor

import (
	"fmt"
	"iter"
	"slices"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// Array is a row-major tensor of integers.
type Array struct {
	Shape, Values []int64
}

// Row is the i-th part along the first dimension.
func (a Array) Row(i int) Array {
	size := len(a.Values) / int(a.Shape[0])
	return Array{Shape: a.Shape[1:], Values: a.Values[i*size : (i+1)*size : (i+1)*size]}
}

// Rows are the parts along the first dimension of a matrix.
func (a Array) Rows() [][]int64 {
	rows := make([][]int64, a.Shape[0])
	for i := range rows {
		rows[i] = a.Row(i).Values
	}
	return rows
}

// Transposed is the array whose dimension i is dimension order[i] of this one.
func (a Array) Transposed(order []int) Array {
	if slices.IsSorted(order) {
		return a
	}
	stride := make([]int64, len(a.Shape))
	for step, d := int64(1), len(a.Shape)-1; d >= 0; d-- {
		stride[d], step = step, step*a.Shape[d]
	}
	out := Array{Values: make([]int64, 0, len(a.Values))}
	strides := make([]int64, 0, len(order))
	for _, d := range order {
		out.Shape, strides = append(out.Shape, a.Shape[d]), append(strides, stride[d])
	}
	for at := range offsets(out.Shape, strides) {
		out.Values = append(out.Values, a.Values[at])
	}
	return out
}

// offsets yields where the elements of a view are, the last dimension running fastest.
func offsets(shape, stride []int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		n, err := elements(shape)
		if err != nil {
			return
		}
		index, at := make([]int64, len(shape)), int64(0)
		for range n {
			if !yield(at) {
				return
			}
			for d := len(index) - 1; d >= 0; d-- {
				at += stride[d] // may wrap; who looks there checks it
				if index[d]++; index[d] < shape[d] {
					break
				}
				at -= stride[d] * shape[d]
				index[d] = 0
			}
		}
	}
}

// maxBytes bounds what shapes may claim, far above any record.
const maxBytes = 1 << 30

// elements is the product of the dimensions; an error when it is negative or
// more than a file can hold.
func elements(shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > maxBytes/d {
			return 0, fmt.Errorf("impossible shape %v", shape)
		}
		n *= d
	}
	return int(n), nil
}

// Dense decodes the elements of an array without gaps, which must fill raw: the last
// dimension runs fastest, in Fortran order the first.
func Dense(raw []byte, dtype safetensors.DType, shape []int64, fortran bool) (Array, error) {
	n, err := elements(shape)
	if err != nil {
		return Array{}, err
	}
	if want := int64(n) * dtype.Size(); int64(len(raw)) != want {
		return Array{}, fmt.Errorf("want %d bytes for shape %v of %s, have %d", want, shape, dtype, len(raw))
	}
	stride, step := make([]int64, len(shape)), int64(1)
	for i := range shape {
		d := len(shape) - 1 - i
		if fortran {
			d = i
		}
		stride[d] = step
		step *= shape[d]
	}
	return strided(raw, dtype, 0, shape, stride)
}

// strided decodes a view of raw elements: stride says for each dimension how many
// elements lie between neighbors.
func strided(raw []byte, dtype safetensors.DType, offset int64, shape, stride []int64) (Array, error) {
	n, err := elements(shape)
	if err != nil {
		return Array{}, err
	}
	size := dtype.Size()
	held := int64(len(raw)) / size
	if int64(n) > held {
		return Array{}, fmt.Errorf("shape %v of a storage of %d elements", shape, held)
	}
	out := Array{Shape: shape, Values: make([]int64, n)}
	i := 0
	for at := range offsets(shape, stride) {
		at += offset
		if at < 0 || at >= held {
			return Array{}, fmt.Errorf("element %d lies outside its storage of %d elements", i, held)
		}
		if err := safetensors.DecodeIntegers(out.Values[i:i+1], raw[at*size:(at+1)*size], dtype); err != nil {
			return Array{}, err
		}
		i++
	}
	return out, nil
}
