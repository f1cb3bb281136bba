package tensor

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// NumPyMagic begins every .npy file.
const NumPyMagic = "\x93NUMPY"

var (
	npyDescr   = regexp.MustCompile(`'descr':\s*'([<>|=]?)([a-zA-Z]\d{1,6})'`)
	npyFortran = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape   = regexp.MustCompile(`'shape':\s*\(([0-9, L]*)\)`)
)

// ParseNumPy reads a .npy file of integers: magic, version, a Python dictionary as text, and
// the elements. Exactly the promised bytes must follow.
func ParseNumPy(b []byte) (Array, error) {
	_, rest, _ := bytes.Cut(b, []byte("{")) // magic, version and length come before
	header, data, whole := bytes.Cut(rest, []byte("\n"))
	descr, order, dims := npyDescr.FindSubmatch(header), npyFortran.FindSubmatch(header), npyShape.FindSubmatch(header)
	switch {
	case !bytes.HasPrefix(b, []byte(NumPyMagic)) || !whole:
		return Array{}, fmt.Errorf("npy: want NumPy's magic and a header, have %.12q", b[:min(len(b), 12)])
	case descr == nil || order == nil || dims == nil:
		return Array{}, fmt.Errorf("npy: want an array of integers, have the header %.80q", header)
	case string(descr[1]) == ">":
		return Array{}, errors.New("npy: big-endian elements are not read")
	case types[string(descr[2])] == "":
		return Array{}, fmt.Errorf("npy: want integers of 1, 2, 4 or 8 bytes, have elements of the NumPy type %s; convert "+
			"whole numbers by .astype(int)", descr[2])
	}
	var shape []int64
	for _, field := range strings.FieldsFunc(string(dims[1]), func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.ParseInt(strings.TrimSuffix(field, "L"), 10, 63)
		if err != nil {
			return Array{}, fmt.Errorf("npy: want a shape of whole numbers, have (%s)", dims[1])
		}
		shape = append(shape, n)
	}
	a, err := Dense(data, string(descr[2]), shape, string(order[1]) == "True")
	if err != nil {
		err = fmt.Errorf("npy: %w", err)
	}
	return a, err
}
