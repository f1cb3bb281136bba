package counts

import (
	"fmt"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// array is a row-major tensor of integers.
type array struct {
	shape  []int64
	values []int64
}

// row is the i-th part along the first dimension.
func (a array) row(i int) array {
	size := len(a.values) / int(a.shape[0])
	return array{shape: a.shape[1:], values: a.values[i*size : (i+1)*size : (i+1)*size]}
}

// rows are the parts along the first dimension of a matrix.
func (a array) rows() [][]int64 {
	rows := make([][]int64, a.shape[0])
	for i := range rows {
		rows[i] = a.row(i).values
	}
	return rows
}

// elements is the product of the dimensions; an error when it is negative or
// more than a file can hold.
func elements(shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > maxFile/d {
			return 0, fmt.Errorf("impossible shape %v", shape)
		}
		n *= d
	}
	return int(n), nil
}

// strided decodes a view of raw elements: stride says for each dimension how many
// elements lie between neighbours.
func strided(raw []byte, dtype safetensors.DType, offset int64, shape, stride []int64) (array, error) {
	n, err := elements(shape)
	if err != nil {
		return array{}, err
	}
	size := dtype.Size()
	held := int64(len(raw)) / size
	if int64(n) > held {
		return array{}, fmt.Errorf("shape %v of a storage of %d elements", shape, held)
	}
	out := array{shape: shape, values: make([]int64, n)}
	index := make([]int64, len(shape))
	for i := range out.values {
		at := offset
		for d, x := range index {
			at += x * stride[d] // may wrap; every element is checked
		}
		if at < 0 || at >= held {
			return array{}, fmt.Errorf("element %d lies outside its storage of %d elements", i, held)
		}
		if err := safetensors.DecodeIntegers(out.values[i:i+1], raw[at*size:(at+1)*size], dtype); err != nil {
			return array{}, err
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
