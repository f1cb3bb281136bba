package tensor

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// Shape is the dimensions of an array.
type Shape = safetensors.Shape

// Array is a row-major tensor of integers.
type Array struct {
	Shape  Shape
	Values []int64
}

// Stored is an array, which is read when it is asked for. A file is a tree of map[string]any, lists ([]any and, of a
// pickle, *[]any), Stored, int64, string, float64, bool and nil.
type Stored func() Array

// OpenSafetensors opens the content of a file of safetensors: its tensors by name.
func OpenSafetensors(path string, text []byte) map[string]any {
	root := map[string]any{}
	for _, t := range Must(safetensors.Parse(path, text)) {
		root[t.Name] = Stored(func() Array { return Dense(t.Data, string(t.DType), t.Shape) })
	}
	return root
}

// Strides say for each dimension how many elements lie between neighbors: 2 × 3 → 3 and 1.
func (a Array) Strides() []int64 {
	strides, step := make([]int64, len(a.Shape)), int64(1)
	for d, n := range slices.Backward(a.Shape) {
		strides[d], step = step, step*n
	}
	return strides
}

// elements is the product of the dimensions, none of which is negative or more than a file can hold.
func elements(shape Shape) int {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > 1<<30/d { // far above any record
			Fail("impossible shape %v", shape)
		}
		n *= d
	}
	return int(n)
}

// storages are PyTorch's names of numbers, as safetensors has them.
var storages = map[string]safetensors.DType{"ByteStorage": safetensors.U8, "CharStorage": safetensors.I8,
	"ShortStorage": safetensors.I16, "IntStorage": safetensors.I32, "LongStorage": safetensors.I64,
	"FloatStorage": safetensors.F32, "DoubleStorage": "F64"}

// floats are read by the integers of their bits.
var floats = map[safetensors.DType]safetensors.DType{safetensors.F32: safetensors.I32, "F64": safetensors.I64}

// decode reads elements of a type that PyTorch or safetensors names: whole numbers, which tools also keep as floats.
func decode(raw []byte, name string) []int64 {
	dtype := cmp.Or(storages[name], safetensors.DType(name))
	bits := cmp.Or(floats[dtype], dtype)
	if bits.Size() == 0 {
		Fail("want a tensor of whole numbers, have a %s", name)
	}
	values := make([]int64, int64(len(raw))/bits.Size())
	Must(0, safetensors.DecodeIntegers(values, raw, bits))
	if bits == dtype {
		return values
	}
	for i, n := range values {
		real := math.Float64frombits(uint64(n))
		if dtype == safetensors.F32 {
			real = float64(math.Float32frombits(uint32(n)))
		}
		if values[i] = int64(real); float64(values[i]) != real {
			Fail("want whole numbers, have %v", real)
		}
	}
	return values
}

// Dense decodes the elements of an array without gaps, which must fill raw.
func Dense(raw []byte, dtype string, shape Shape) Array {
	values := decode(raw, dtype)
	if elements(shape) != len(values) {
		Fail("want the numbers of shape %v, have %d of type %s", shape, len(values), dtype)
	}
	return Array{shape, values}
}

// View is of elements of a storage, which it copies unless they stand there in order.
func View(storage []int64, offset int64, shape Shape, stride []int64) Array {
	n := elements(shape)
	if n > len(storage) {
		Fail("shape %v of a storage of %d elements", shape, len(storage))
	}
	out, ordered := Array{Shape: shape}, offset == 0
	for d, step := range out.Strides() {
		ordered = ordered && (shape[d] == 1 || stride[d] == step)
	}
	if out.Values = storage[:n]; ordered {
		return out
	}
	out.Values = make([]int64, 0, n)
	var take func(d int, at int64)
	take = func(d int, at int64) {
		switch {
		case d < len(shape):
			for i := range shape[d] {
				take(d+1, at+i*stride[d]) // may wrap, and is checked
			}
		case at < 0 || at >= int64(len(storage)):
			Fail("element %d lies outside its storage of %d elements", len(out.Values), len(storage))
		default:
			out.Values = append(out.Values, storage[at])
		}
	}
	take(0, offset)
	return out
}
