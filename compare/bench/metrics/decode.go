package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a decoded JSON object or Python dict, members in order. Values are
// *object, *list, string, float64, bool or nil.
type object struct {
	keys   []string
	values []any
}

// list is a decoded array. Elements beyond the document's budget are read but
// not kept.
type list struct {
	items   []any
	dropped int
}

// get returns the value of a key. A key given twice must have one value.
func (o *object) get(key string) (v any, ok bool, err error) {
	for i, k := range o.keys {
		if k != key {
			continue
		}
		if ok && !equal(v, o.values[i]) {
			return nil, false, errTwice
		}
		v, ok = o.values[i], true
	}
	return v, ok, nil
}

// equal compares decoded values by what they print, so that NaN equals itself.
func equal(a, b any) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }

// GoString prints the content of an object, not its place in memory.
func (o *object) GoString() string { return fmt.Sprintf("{%#v %#v}", o.keys, o.values) }

// GoString prints the content of a list.
func (l *list) GoString() string { return fmt.Sprintf("[%#v %d]", l.items, l.dropped) }

// has reports whether all the keys are there.
func (o *object) has(keys ...string) bool {
	for _, key := range keys {
		if _, ok, err := o.get(key); !ok && err == nil {
			return false
		}
	}
	return true
}

// maxDepth bounds the nesting of a document, maxString the bytes kept of one
// string in it (generated texts are long and never needed).
const (
	maxDepth  = 64
	maxString = 4 << 10
)

// Beyond the budget, so many members of the document itself are still kept, and
// so many bytes of a string: totals may stand after the lists of every request.
const (
	maxMembers = 1 << 10
	shortText  = 64
)

// decoder reads one object from a stream. It accepts JSON, the NaN and Infinity
// that Python's json module writes, and the repr of a Python dict, which is what
// TensorRT-LLM's iteration logs hold. An object that does not begin a new line
// after its brace must end on the line it began on, so that a cut row never
// swallows the rows after it.
type decoder struct {
	in     *reader
	oneRow bool
	budget int
}

// errCut is an object that ends before its closing brace.
var errCut = errors.New("ends before its closing brace")

// decodeObject reads the object whose opening brace is the next byte.
func decodeObject(in *reader) (*object, error) {
	d := &decoder{in: in, budget: MaxElements, oneRow: true}
	if err := d.expect('{'); err != nil {
		return nil, err
	}
	// Pretty-printed documents break the line right after their first brace.
	for {
		c, err := d.peek()
		if err != nil {
			return nil, err
		}
		if c != ' ' && c != '\t' && c != '\r' {
			d.oneRow = c != '\n'
			break
		}
		d.skip()
	}
	return d.members(1)
}

func (d *decoder) peek() (byte, error) {
	b, err := d.in.Peek(1)
	if err != nil {
		if err == io.EOF {
			err = errCut
		}
		return 0, err
	}
	return b[0], nil
}

// skip consumes the byte that peek showed.
func (d *decoder) skip() {
	if c, err := d.in.ReadByte(); err == nil {
		d.in.passed(c)
	}
}

func (d *decoder) expect(want byte) error {
	c, err := d.token()
	if err != nil {
		return err
	}
	if c != want {
		return fmt.Errorf("want %q, found %q", want, c)
	}
	d.skip()
	return nil
}

// token returns the next byte that is not white space, unread.
func (d *decoder) token() (byte, error) {
	for {
		c, err := d.peek()
		if err != nil {
			return 0, err
		}
		switch {
		case c == '\n' && d.oneRow:
			return 0, errCut
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			return c, nil
		}
		d.skip()
	}
}

// members reads "key: value, …}" after the opening brace.
func (d *decoder) members(depth int) (*object, error) {
	o := &object{}
	for {
		c, err := d.token()
		if err != nil {
			return nil, err
		}
		if c == '}' { // also after a trailing comma, as a repr may have
			d.skip()
			return o, nil
		}
		if c != '"' && c != '\'' {
			return nil, fmt.Errorf("want a quoted key, found %q", c)
		}
		key, err := d.text(c)
		if err != nil {
			return nil, err
		}
		if err := d.expect(':'); err != nil {
			return nil, err
		}
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		if d.keep() || depth == 1 && len(o.keys) < maxMembers {
			o.keys, o.values = append(o.keys, key), append(o.values, v)
		}
		if more, err := d.more('}'); err != nil || !more {
			return o, err
		}
	}
}

// more consumes a comma (true) or the closing byte (false).
func (d *decoder) more(closing byte) (bool, error) {
	c, err := d.token()
	if err != nil {
		return false, err
	}
	if c != ',' && c != closing {
		return false, fmt.Errorf("want ',' or %q, found %q", closing, c)
	}
	d.skip()
	return c == ',', nil
}

func (d *decoder) keep() bool {
	d.budget--
	return d.budget >= 0
}

func (d *decoder) value(depth int) (any, error) {
	c, err := d.token()
	if err != nil {
		return nil, err
	}
	if depth >= maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch c {
	case '{':
		d.skip()
		return d.members(depth + 1)
	case '[':
		d.skip()
		return d.elements(']', depth+1)
	case '(': // a Python tuple
		d.skip()
		return d.elements(')', depth+1)
	case '"', '\'':
		return d.text(c)
	}
	return d.word()
}

func (d *decoder) elements(closing byte, depth int) (*list, error) {
	l := &list{}
	for {
		c, err := d.token()
		if err != nil {
			return nil, err
		}
		if c == closing {
			d.skip()
			return l, nil
		}
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		if d.keep() {
			l.items = append(l.items, v)
		} else {
			l.dropped++
		}
		if more, err := d.more(closing); err != nil || !more {
			return l, err
		}
	}
}

// word reads a number or one of the bare names of JSON and Python.
func (d *decoder) word() (any, error) {
	var b strings.Builder
	for {
		c, err := d.peek()
		if err != nil || strings.IndexByte(" \t\r\n,:]})", c) >= 0 {
			break
		}
		if b.Len() >= 64 {
			return nil, fmt.Errorf("want a value, found %q…", b.String())
		}
		b.WriteByte(c)
		d.skip()
	}
	switch w := b.String(); w {
	case "null", "None":
		return nil, nil
	case "true", "True":
		return true, nil
	case "false", "False":
		return false, nil
	case "NaN", "nan":
		return math.NaN(), nil
	case "Infinity", "inf":
		return math.Inf(1), nil
	case "-Infinity", "-inf":
		return math.Inf(-1), nil
	default:
		v, err := strconv.ParseFloat(w, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || strings.ContainsAny(w, "xX_iInN") {
			return nil, fmt.Errorf("want a value, found %q", w)
		}
		return v, nil
	}
}

// text reads a quoted string. It keeps at most maxString bytes and lets any
// byte through, so that Latin-1 output is read too.
func (d *decoder) text(quote byte) (string, error) {
	d.skip()
	var b strings.Builder
	stops := "\n\\" + string(quote)
	room := maxString
	if d.budget <= 0 {
		room = shortText
	}
	put := func(piece []byte) {
		b.Write(piece[:min(len(piece), max(0, room-b.Len()))])
	}
	for {
		c, err := d.peek()
		if err != nil {
			return "", err
		}
		switch c {
		case '\n':
			return "", errors.New("line ends inside a string")
		case quote:
			d.skip()
			d.budget -= b.Len() / 32
			return b.String(), nil
		case '\\':
			d.skip()
			s, err := d.escape()
			if err != nil {
				return "", err
			}
			put([]byte(s))
		default:
			plain, _ := d.in.Peek(d.in.Buffered())
			if end := bytes.IndexAny(plain, stops); end >= 0 {
				plain = plain[:end]
			}
			put(plain)
			if err := d.in.discard(len(plain)); err != nil {
				return "", err
			}
		}
	}
}

func (d *decoder) escape() (string, error) {
	c, err := d.peek()
	if err != nil {
		return "", err
	}
	if c == '\n' {
		return "", errors.New("line ends inside a string")
	}
	d.skip()
	digits := 0
	switch c {
	case 'n':
		return "\n", nil
	case 't':
		return "\t", nil
	case 'r':
		return "\r", nil
	case 'b':
		return "\b", nil
	case 'f':
		return "\f", nil
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return string([]byte{c}), nil
	}
	b, err := d.in.Peek(digits)
	if err != nil {
		return "", errCut
	}
	code, err := strconv.ParseUint(string(b), 16, 32)
	if err != nil {
		return "", fmt.Errorf("want %d hexadecimal digits after \\%c, found %q", digits, c, b)
	}
	if err := d.in.discard(digits); err != nil {
		return "", err
	}
	if code > utf8.MaxRune { // surrogate halves come out as U+FFFD, which is enough for texts nobody reads
		code = utf8.RuneError
	}
	return string(rune(code)), nil
}
