package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// NumPyMagic begins every .npy file.
const NumPyMagic = "\x93NUMPY"

var (
	npyDescr   = regexp.MustCompile(`'descr':\s*'([<>|=]?)([a-zA-Z])(\d{1,6})'`)
	npyFortran = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape   = regexp.MustCompile(`'shape':\s*\(([0-9, L]*)\)`)

	npyTypes = map[string]safetensors.DType{
		"i1": safetensors.I8, "i2": safetensors.I16, "i4": safetensors.I32, "i8": safetensors.I64,
		"u1": safetensors.U8, "u2": safetensors.U16, "u4": safetensors.U32, "u8": safetensors.U64,
	}
)

// ParseNumPy reads a .npy file of integers: magic, version, a Python dictionary as text, and
// the elements. Exactly the promised bytes must follow.
func ParseNumPy(b []byte) (Array, error) {
	a, err := readNumPy(b)
	if err != nil {
		return a, fmt.Errorf("npy: %w", err)
	}
	return a, nil
}

func readNumPy(b []byte) (a Array, err error) {
	header, data, err := npyHeader(b)
	if err != nil {
		return a, err
	}
	descr, order, shape := npyDescr.FindStringSubmatch(header), npyFortran.FindStringSubmatch(header),
		npyShape.FindStringSubmatch(header)
	if descr == nil || order == nil || shape == nil {
		return a, fmt.Errorf("want an array of integers, have the header %.80q", header)
	}
	for _, field := range strings.FieldsFunc(shape[1], func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.ParseInt(strings.TrimSuffix(field, "L"), 10, 63)
		if err != nil {
			return a, fmt.Errorf("shape (%s): %w", shape[1], err)
		}
		a.Shape = append(a.Shape, n)
	}
	kind, width := descr[2], descr[3]
	if descr[1] == ">" {
		return a, errors.New("big-endian elements are not read")
	}
	dtype, ok := npyTypes[kind+width]
	if !ok {
		return a, fmt.Errorf(
			"want integers of 1, 2, 4 or 8 bytes, have elements of the NumPy type %s%s; convert whole numbers by .astype(int)",
			kind, width)
	}
	return Dense(data, dtype, a.Shape, order[1] == "True")
}

// npyHeader splits a file into its header text and its elements.
func npyHeader(b []byte) (header string, data []byte, err error) {
	if len(b) < 10 || string(b[:6]) != NumPyMagic {
		return "", nil, errors.New("no NumPy magic")
	}
	length, start := uint64(binary.LittleEndian.Uint16(b[8:])), uint64(10)
	switch {
	case b[6] < 1 || b[6] > 3:
		return "", nil, fmt.Errorf("want format version 1 to 3, have %d", b[6])
	case b[6] > 1 && len(b) >= 12:
		length, start = uint64(binary.LittleEndian.Uint32(b[8:])), 12
	}
	if start+length > uint64(len(b)) || b[6] > 1 && start == 10 {
		return "", nil, errors.New("the header is cut short")
	}
	return string(b[start : start+length]), b[start+length:], nil
}
