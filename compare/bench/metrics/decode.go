package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
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
		if ok && fmt.Sprintf("%#v", v) != fmt.Sprintf("%#v", o.values[i]) { // NaN equals itself
			return nil, false, errTwice
		}
		v, ok = o.values[i], true
	}
	return v, ok, nil
}

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

// maxDepth bounds the nesting of a document, maxString the bytes kept of one string in it
// (generated texts are long and never needed). Beyond the budget, maxMembers of the document
// itself are still kept: totals may stand after the lists of every request.
const (
	maxDepth   = 64
	maxString  = 256
	maxMembers = 1 << 10
)

// decoder reads one object from a stream. It accepts JSON, the NaN and Infinity
// that Python's json module writes, and the repr of a Python dict, which is what
// TensorRT-LLM's iteration logs hold. An object may run over several lines, but a line
// that begins as a row or a log does, not as the rest of an object, ends an object that
// began beside its brace: a cut row never swallows the rows after it.
type decoder struct {
	in     *reader
	oneRow bool
	budget int
	err    error // the first one, after which nothing is read
}

// errCut is an object that ends before its closing brace.
var errCut = errors.New("ends before its closing brace")

// decodeObject reads the object whose opening brace is the next byte.
func decodeObject(in *reader) (*object, error) {
	d := &decoder{in: in, budget: maxElements, oneRow: true}
	d.expect('{')
	// Pretty-printed documents break the line right after their first brace.
	for strings.IndexByte(" \t\r", d.peek()) >= 0 {
		d.skip()
	}
	d.oneRow = d.peek() != '\n'
	o := d.object(1)
	return o, d.err
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// peek is the next byte; 0 after an error.
func (d *decoder) peek() byte {
	if d.err != nil {
		return 0
	}
	b, err := d.in.Peek(1)
	if err == nil {
		return b[0]
	}
	if err == io.EOF {
		err = errCut
	}
	d.fail(err)
	return 0
}

// skip consumes the byte that peek showed.
func (d *decoder) skip() {
	if c, err := d.in.ReadByte(); err == nil {
		d.in.passed(c)
	}
}

// token is the next byte that is not white space, unread; 0 after an error.
func (d *decoder) token() byte {
	for {
		c := d.peek()
		if c == '\n' && d.oneRow && !d.continues() {
			d.fail(errCut)
			return 0
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
		d.skip()
	}
}

// continues reports whether the line after the next byte, a newline, begins as the rest of an
// object does: indented, or with a key, a text or a closing bracket.
func (d *decoder) continues() bool {
	b, _ := d.in.Peek(2)
	return len(b) == 2 && strings.IndexByte(" \t\r\n\"'}]", b[1]) >= 0
}

// accept consumes the next token if it is c.
func (d *decoder) accept(c byte) bool {
	ok := d.token() == c && d.err == nil
	if ok {
		d.skip()
	}
	return ok
}

func (d *decoder) expect(want byte) {
	if !d.accept(want) {
		d.fail(fmt.Errorf("want %q, found %q", want, d.token()))
	}
}

// sequence reads "one, one, …" and the closing byte, also after a trailing
// comma, as a repr may have.
func (d *decoder) sequence(closing byte, one func()) {
	for d.err == nil && !d.accept(closing) {
		if one(); d.accept(',') {
			continue
		}
		if !d.accept(closing) {
			d.fail(fmt.Errorf("want ',' or %q, found %q", closing, d.token()))
		}
		return
	}
}

func (d *decoder) keep() bool {
	d.budget--
	return d.budget >= 0
}

// object reads "key: value, …}" after the opening brace.
func (d *decoder) object(depth int) *object {
	o := &object{}
	d.sequence('}', func() {
		quote := d.token()
		if quote != '"' && quote != '\'' {
			d.fail(fmt.Errorf("want a quoted key, found %q", quote))
			return
		}
		key := d.text(quote)
		d.expect(':')
		v := d.value(depth)
		if d.keep() || depth == 1 && len(o.keys) < maxMembers {
			o.keys, o.values = append(o.keys, key), append(o.values, v)
		}
	})
	return o
}

// list reads "value, …]" after the opening bracket.
func (d *decoder) list(closing byte, depth int) *list {
	l := &list{}
	d.sequence(closing, func() {
		if v := d.value(depth); d.keep() {
			l.items = append(l.items, v)
		} else {
			l.dropped++
		}
	})
	return l
}

func (d *decoder) value(depth int) any {
	c := d.token()
	if depth >= maxDepth {
		d.fail(fmt.Errorf("nested deeper than %d", maxDepth))
	}
	if d.err != nil {
		return nil
	}
	switch c {
	case '{':
		d.skip()
		return d.object(depth + 1)
	case '[':
		d.skip()
		return d.list(']', depth+1)
	case '(': // a Python tuple
		d.skip()
		return d.list(')', depth+1)
	case '"', '\'':
		return d.text(c)
	}
	return d.word()
}

// words are the bare names of JSON, of Python's json module and of a repr.
var words = map[string]any{
	"null": nil, "None": nil, "true": true, "True": true, "false": false, "False": false,
	"NaN": math.NaN(), "nan": math.NaN(), "Infinity": math.Inf(1), "inf": math.Inf(1), "-Infinity": math.Inf(-1),
	"-inf": math.Inf(-1),
}

// word reads a number or one of words.
func (d *decoder) word() any {
	b := make([]byte, 0, 64)
	for {
		c := d.peek()
		if d.err != nil || strings.IndexByte(" \t\r\n,:]})", c) >= 0 {
			break
		}
		if len(b) == cap(b) {
			d.fail(fmt.Errorf("want a value, found %q…", string(b)))
			return nil
		}
		b = append(b, c)
		d.skip()
	}
	w := string(b)
	if v, ok := words[w]; ok {
		return v
	}
	v, err := strconv.ParseFloat(w, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || strings.ContainsAny(w, "xX_iInN") {
		d.fail(fmt.Errorf("want a value, found %q", w))
	}
	return v
}

// text reads a quoted string. It keeps at most maxString bytes and lets any
// byte through, so that Latin-1 output is read too.
func (d *decoder) text(quote byte) string {
	d.skip()
	var b strings.Builder
	stops := "\n\\" + string(quote)
	for d.err == nil {
		switch d.peek() {
		case '\n':
			d.fail(errors.New("line ends inside a string"))
		case quote:
			d.skip()
			d.budget -= b.Len() / 32
			return b.String()
		case '\\':
			d.skip()
			s := d.escape()
			b.WriteString(s[:min(len(s), max(0, maxString-b.Len()))])
		default:
			plain, _ := d.in.Peek(d.in.Buffered())
			if end := bytes.IndexAny(plain, stops); end >= 0 {
				plain = plain[:end]
			}
			b.Write(plain[:min(len(plain), max(0, maxString-b.Len()))])
			if err := d.in.discard(len(plain)); err != nil {
				d.fail(err)
			}
		}
	}
	return ""
}

// hexDigits are those of the escapes that name a rune.
var hexDigits = [256]int{'x': 2, 'u': 4, 'U': 8}

// escape reads what stands after a backslash. Surrogate halves come out as U+FFFD,
// which is enough for texts nobody reads.
func (d *decoder) escape() string {
	c := d.peek()
	if c == '\n' {
		return "" // text fails
	}
	d.skip()
	if i := strings.IndexByte("ntrbf", c); i >= 0 {
		return "\n\t\r\b\f"[i : i+1]
	}
	digits := hexDigits[c]
	if digits == 0 {
		return string([]byte{c})
	}
	b, err := d.in.Peek(digits)
	if err != nil {
		d.fail(errCut)
		return ""
	}
	code, err := strconv.ParseUint(string(b), 16, 32)
	if err != nil {
		d.fail(fmt.Errorf("want %d hexadecimal digits after \\%c, found %q", digits, c, b))
		return ""
	}
	d.fail(d.in.discard(digits))
	return string(rune(code))
}
