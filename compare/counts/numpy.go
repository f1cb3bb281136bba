package counts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	npyMagic  = "\x93NUMPY"
	npyFormat = "NumPy array of loads"
)

// numpyArray is the content of a .npy file: integers, or text.
type numpyArray struct {
	array
	text string // of a single string, as numpy.savez keeps one
}

var (
	npyDescr   = regexp.MustCompile(`'descr':\s*'([<>|=]?)([a-zA-Z])(\d{1,6})'`)
	npyFortran = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape   = regexp.MustCompile(`'shape':\s*\(([0-9, L]*)\)`)
)

// parseNPY reads a .npy file: magic, version, a Python dictionary as text, and
// the elements. Exactly the promised bytes must follow.
func parseNPY(b []byte) (numpyArray, error) {
	header, data, err := npyHeader(b)
	if err != nil {
		return numpyArray{}, err
	}
	descr, order, shape := npyDescr.FindStringSubmatch(header), npyFortran.FindStringSubmatch(header), npyShape.FindStringSubmatch(header)
	if descr == nil || order == nil || shape == nil {
		return numpyArray{}, fmt.Errorf("npy: a header that is not understood: %.80q", header)
	}
	var a numpyArray
	for _, field := range strings.FieldsFunc(shape[1], func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.ParseInt(strings.TrimSuffix(field, "L"), 10, 63)
		if err != nil {
			return a, fmt.Errorf("npy: shape (%s): %w", shape[1], err)
		}
		a.shape = append(a.shape, n)
	}
	n, err := elements(a.shape)
	if err != nil {
		return a, fmt.Errorf("npy: %w", err)
	}
	size, _ := strconv.Atoi(descr[3]) // at most six digits
	if descr[1] == ">" {
		return a, fmt.Errorf("npy: big-endian elements are not read")
	}
	if descr[2] == "U" {
		size *= 4
	}
	if len(data) != n*size {
		return a, fmt.Errorf("npy: want %d bytes for shape %v of %s%s, have %d", n*size, a.shape, descr[2], descr[3], len(data))
	}
	if descr[2] == "U" && n == 1 {
		a.text = utf32(data)
		return a, nil
	}
	a.values = make([]int64, n)
	for i := range a.values {
		if a.values[i], err = npyInteger(descr[2], data[i*size:(i+1)*size]); err != nil {
			return a, fmt.Errorf("npy: %w", err)
		}
	}
	if order[1] == "True" {
		a.values = rowMajor(a.shape, a.values)
	}
	return a, nil
}

// npyHeader splits a file into its header text and its elements.
func npyHeader(b []byte) (header string, data []byte, err error) {
	if len(b) < 10 || string(b[:6]) != npyMagic {
		return "", nil, errors.New("npy: no NumPy magic")
	}
	length, start := uint64(binary.LittleEndian.Uint16(b[8:])), uint64(10)
	switch {
	case b[6] < 1 || b[6] > 3:
		return "", nil, fmt.Errorf("npy: want format version 1 to 3, have %d", b[6])
	case b[6] > 1:
		if len(b) < 12 {
			return "", nil, errors.New("npy: the header is cut short")
		}
		length, start = uint64(binary.LittleEndian.Uint32(b[8:])), 12
	}
	if start+length > uint64(len(b)) {
		return "", nil, errors.New("npy: the header is cut short")
	}
	return string(b[start : start+length]), b[start+length:], nil
}

func npyInteger(kind string, b []byte) (int64, error) {
	unsigned := kind == "u"
	if kind != "i" && !unsigned {
		return 0, fmt.Errorf("want integers, have elements of kind %q", kind)
	}
	le := binary.LittleEndian
	switch {
	case len(b) == 1 && unsigned:
		return int64(b[0]), nil
	case len(b) == 1:
		return int64(int8(b[0])), nil
	case len(b) == 2 && unsigned:
		return int64(le.Uint16(b)), nil
	case len(b) == 2:
		return int64(int16(le.Uint16(b))), nil
	case len(b) == 4 && unsigned:
		return int64(le.Uint32(b)), nil
	case len(b) == 4:
		return int64(int32(le.Uint32(b))), nil
	case len(b) == 8:
		v := int64(le.Uint64(b))
		if unsigned && v < 0 {
			return 0, fmt.Errorf("%d does not fit 63 bits", uint64(v))
		}
		return v, nil
	}
	return 0, fmt.Errorf("integers of %d bytes are not read", len(b))
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

// rowMajor turns values stored with the first dimension running fastest.
func rowMajor(shape, values []int64) []int64 {
	out := make([]int64, len(values))
	for i := range values {
		at, rest, step := 0, i, 1
		// i counts in row-major order: its digits from the last dimension up.
		digits := make([]int, len(shape))
		for d := len(shape) - 1; d >= 0; d-- {
			digits[d], rest = rest%int(shape[d]), rest/int(shape[d])
		}
		for d, x := range digits {
			at += x * step
			step *= int(shape[d])
		}
		out[i] = values[at]
	}
	return out
}

// readNPY reads an array [layers, experts], or [layers, ranks, local experts]
// as vllm-ascend's experiments save it. It is a sum over many passes.
func readNPY(path string, content []byte) (*Record, error) {
	a, err := parseNPY(content)
	if err != nil {
		return nil, err
	}
	if a.values == nil || len(a.shape) != 2 && len(a.shape) != 3 || a.shape[0] < 1 || a.shape[0] > maxLayers {
		return nil, fmt.Errorf("want counts of [layers, experts] or [layers, ranks, local experts], have %v", a.shape)
	}
	r := &Record{Source: path, Format: npyFormat, Window: true}
	if len(a.shape) == 3 {
		r.Ranks = int(a.shape[1])
	}
	var rows [][]int64
	for layer := range int(a.shape[0]) {
		rows = append(rows, a.row(layer).values)
	}
	if err := r.addLayers(0, rows); err != nil {
		return nil, err
	}
	return r.finish()
}
