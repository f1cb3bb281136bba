package counts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
)

const npyMagic = "\x93NUMPY"

// numpyArray is the content of a .npy file: integers, or text.
type numpyArray struct {
	array
	dtype safetensors.DType
	text  string // of a single string, as numpy.savez keeps one
}

var (
	npyDescr   = regexp.MustCompile(`'descr':\s*'([<>|=]?)([a-zA-Z])(\d{1,6})'`)
	npyFortran = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape   = regexp.MustCompile(`'shape':\s*\(([0-9, L]*)\)`)

	npyTypes = map[string]safetensors.DType{
		"i1": safetensors.I8, "i2": safetensors.I16, "i4": safetensors.I32, "i8": safetensors.I64,
		"u1": safetensors.U8, "u2": safetensors.U16, "u4": safetensors.U32, "u8": safetensors.U64,
	}
)

// parseNPY reads a .npy file: magic, version, a Python dictionary as text, and
// the elements. Exactly the promised bytes must follow.
func parseNPY(b []byte) (numpyArray, error) {
	a, err := readNumPy(b)
	if err != nil {
		return a, fmt.Errorf("npy: %w", err)
	}
	return a, nil
}

func readNumPy(b []byte) (a numpyArray, err error) {
	header, data, err := npyHeader(b)
	if err != nil {
		return a, err
	}
	descr, order, shape := npyDescr.FindStringSubmatch(header), npyFortran.FindStringSubmatch(header), npyShape.FindStringSubmatch(header)
	if descr == nil || order == nil || shape == nil {
		return a, fmt.Errorf("a header that is not understood: %.80q", header)
	}
	for _, field := range strings.FieldsFunc(shape[1], func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.ParseInt(strings.TrimSuffix(field, "L"), 10, 63)
		if err != nil {
			return a, fmt.Errorf("shape (%s): %w", shape[1], err)
		}
		a.shape = append(a.shape, n)
	}
	n, err := elements(a.shape)
	if err != nil {
		return a, err
	}
	kind, width := descr[2], descr[3]
	size, _ := strconv.Atoi(width) // at most six digits
	if descr[1] == ">" {
		return a, errors.New("big-endian elements are not read")
	}
	if kind == "U" {
		size *= 4
	}
	if len(data) != n*size {
		return a, fmt.Errorf("want %d bytes for shape %v of %s%s, have %d", n*size, a.shape, kind, width, len(data))
	}
	if kind == "U" && n == 1 {
		a.text = utf32(data)
		return a, nil
	}
	dtype, ok := npyTypes[kind+width]
	if !ok {
		return a, fmt.Errorf("want integers of 1, 2, 4 or 8 bytes, have elements of type %s%s", kind, width)
	}
	a.dtype = dtype
	a.array, err = strided(data, dtype, 0, a.shape, denseStrides(a.shape, order[1] == "True"))
	return a, err
}

// denseStrides are those of a dense array, the first dimension running fastest in
// Fortran order, the last one otherwise.
func denseStrides(shape []int64, fortran bool) []int64 {
	stride, step := make([]int64, len(shape)), int64(1)
	for i := range shape {
		d := len(shape) - 1 - i
		if fortran {
			d = i
		}
		stride[d] = step
		step *= shape[d]
	}
	return stride
}

// npyHeader splits a file into its header text and its elements.
func npyHeader(b []byte) (header string, data []byte, err error) {
	if len(b) < 10 || string(b[:6]) != npyMagic {
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

// utf32 reads little-endian UTF-32 padded with zeros.
func utf32(b []byte) string {
	var s strings.Builder
	for ; len(b) >= 4; b = b[4:] {
		if r := rune(binary.LittleEndian.Uint32(b)); r != 0 {
			s.WriteRune(r)
		}
	}
	return s.String()
}

// readNPY reads an array [layers, experts], or [layers, ranks, local experts]
// as vllm-ascend's experiments save it. It is a sum over many passes.
func readNPY(s *source, r *Record) error {
	a, err := s.array()
	if err != nil {
		return err
	}
	if a.values == nil || len(a.shape) != 2 && len(a.shape) != 3 || a.shape[0] < 1 || a.shape[0] > maxLayers {
		return fmt.Errorf("want counts of [layers, experts] or [layers, ranks, local experts], have %v", a.shape)
	}
	r.Window = true
	if len(a.shape) == 3 {
		r.Ranks = int(a.shape[1])
	}
	if distinct, _ := likeRoutes(a.array); distinct {
		r.warn("ambiguous_array", "read as loads of [layers, ranks, local experts]; so few numbers could also be expert ids of [tokens, layers, top-k], which as JSON are named \"routed_experts\"")
	}
	return r.addLayers(0, a.rows())
}
