package tensor

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
)

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
func ParseNumPy(b []byte) (a Array, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("npy: %w", err)
		}
	}()
	before, rest, _ := bytes.Cut(b, []byte("{")) // magic, version and length come before
	text, data, whole := bytes.Cut(rest, []byte("\n"))
	if !bytes.HasPrefix(before, []byte(NumPyMagic)) || !whole {
		return a, fmt.Errorf("want NumPy's magic and a header, have %.12q", b[:min(len(b), 12)])
	}
	header := string(text)
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
