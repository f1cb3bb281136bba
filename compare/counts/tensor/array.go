package tensor

import (
	"fmt"

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
// elements lie between neighbours.
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
	index := make([]int64, len(shape))
	for i := range out.Values {
		at := offset
		for d, x := range index {
			at += x * stride[d] // may wrap; every element is checked
		}
		if at < 0 || at >= held {
			return Array{}, fmt.Errorf("element %d lies outside its storage of %d elements", i, held)
		}
		if err := safetensors.DecodeIntegers(out.Values[i:i+1], raw[at*size:(at+1)*size], dtype); err != nil {
			return Array{}, err
		}
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
	}
	return out, nil
}
