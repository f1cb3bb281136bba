package tensor

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// NumPyMagic begins every .npy file.
const NumPyMagic = "\x93NUMPY"

// npyHeader is the Python dictionary that numpy.save writes, its keys in this order: type without the byte order,
// which must be little-endian, order of the dimensions, and shape.
var npyHeader = regexp.MustCompile(
	`\{'descr': '[<|=]?([a-z])(\d)', 'fortran_order': (True|False), 'shape': \(([0-9, L]*)\), \} *$`)

// ParseNumPy reads a .npy file of integers: magic, version, the header, and the elements. Exactly the promised
// bytes must follow.
func ParseNumPy(b []byte) (a Array) {
	head, data, whole := bytes.Cut(b, []byte("\n"))
	m := npyHeader.FindSubmatch(head)
	if !bytes.HasPrefix(b, []byte(NumPyMagic)) || !whole || m == nil {
		Fail("npy: want NumPy's magic and the header of an array of little-endian integers, have %.90q", head)
	}
	var shape []int64
	for field := range strings.FieldsFuncSeq(string(m[4]), func(r rune) bool { return r < '0' || r > '9' }) {
		n, _ := strconv.ParseInt(field, 10, 64) // the largest number where it has too many digits
		shape = append(shape, n)
	}
	dtype := fmt.Sprintf("%s%d", bytes.ToUpper(m[1]), 8*(m[2][0]-'0')) // i4 → I32
	a = Dense(data, dtype, shape)
	strides, step := a.Strides(), int64(1)
	for d, n := range shape {
		if string(m[3]) == "True" { // the first dimension runs fastest
			strides[d], step = step, step*n
		}
	}
	return View(a.Values, 0, shape, strides)
}
