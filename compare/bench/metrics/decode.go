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

// maxDepth bounds the nesting of a document, maxString the bytes kept of one string in it
// (generated texts are long and never needed). Beyond the budget, maxMembers of the document
// itself are still kept: totals may stand after the lists of every request.
const (
	maxDepth   = 64
	maxString  = 256
	maxMembers = 1 << 10
)

// decoder reads one object from a stream by its grammar, over as many lines as it takes.
// It accepts JSON, the NaN and Infinity that Python's json module writes, and the repr of a
// Python dict, which TensorRT-LLM's iteration logs hold.
type decoder struct {
	in      *reader
	doc     *document
	budget  int
	members int   // kept members of the document itself
	err     error // the first one, after which nothing is read
}

// errCut is an object that ends before its closing brace.
var errCut = errors.New("ends before its closing brace")

// errTwice is the cause of an error about two values of one thing.
var errTwice = errors.New("two values")

// decodeObject reads the object whose opening brace is the next byte into the document.
func decodeObject(in *reader, doc *document) error {
	d := &decoder{in: in, doc: doc, budget: maxElements}
	d.expect('{')
	d.object("", 1)
	return d.err
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

// token is the next byte that is not white space, unread; 0 after an error.
func (d *decoder) token() byte {
	for {
		c := d.peek()
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
		d.in.pass(1)
	}
}

// accept consumes the next token if it is c.
func (d *decoder) accept(c byte) bool {
	ok := d.token() == c && d.err == nil
	if ok {
		d.in.pass(1)
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
	return d.err == nil && d.budget >= 0
}

// object reads "key: value, …}" after the opening brace.
func (d *decoder) object(path string, depth int) {
	d.sequence('}', func() {
		quote := d.token()
		if d.err == nil && quote != '"' && quote != '\'' {
			d.fail(fmt.Errorf("want a key, found %q", quote))
			return
		}
		at := path + d.text(quote)
		d.expect(':')
		v := d.value(at, depth)
		if d.keep() {
			d.doc.set(at, v)
		} else if depth == 1 && d.members < maxMembers {
			d.members++
			d.doc.set(at, v)
		}
	})
}

// list reads "value, …]" after the opening bracket.
func (d *decoder) list(closing byte, path string, depth int) *list {
	l := &list{}
	d.sequence(closing, func() {
		at := path
		if c := d.token(); d.budget > 0 && (c == '{' || c == '[') {
			at += "/" + strconv.Itoa(len(l.items))
		}
		if v := d.value(at, depth); d.keep() {
			l.items = append(l.items, v)
			if _, nested := v.(*list); nested {
				d.doc.set(at, v)
			}
		} else {
			l.dropped++
		}
	})
	return l
}

func (d *decoder) value(path string, depth int) any {
	c := d.token()
	if depth >= maxDepth {
		d.fail(fmt.Errorf("nested deeper than %d", maxDepth))
	}
	if d.err != nil {
		return nil
	}
	switch c {
	case '{':
		d.in.pass(1)
		d.object(path+"/", depth+1)
		return object{}
	case '[':
		d.in.pass(1)
		return d.list(']', path, depth+1)
	case '(': // a Python tuple
		d.in.pass(1)
		return d.list(')', path, depth+1)
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
		d.in.pass(1)
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
	d.in.pass(1)
	var b strings.Builder
	stops := "\n\\" + string(quote)
	for d.err == nil {
		switch d.peek() {
		case '\n':
			d.fail(errors.New("line ends inside a string"))
		case quote:
			d.in.pass(1)
			d.budget -= b.Len() / 32
			return b.String()
		case '\\':
			d.in.pass(1)
			s := d.escape()
			b.WriteString(s[:min(len(s), max(0, maxString-b.Len()))])
		default:
			plain, _ := d.in.Peek(d.in.Buffered())
			if end := bytes.IndexAny(plain, stops); end >= 0 {
				plain = plain[:end]
			}
			b.Write(plain[:min(len(plain), max(0, maxString-b.Len()))])
			d.in.pass(len(plain))
		}
	}
	return ""
}

// hexDigits are the lengths of the escapes that name a rune: \x41, \u00e9.
var hexDigits = [256]int{'x': 2, 'u': 4, 'U': 8}

// escape reads what stands after a backslash. Surrogate halves come out as U+FFFD,
// which is enough for texts nobody reads.
func (d *decoder) escape() string {
	c := d.peek()
	if c == '\n' {
		return "" // text fails
	}
	d.in.pass(1)
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
	d.in.pass(digits)
	return string(rune(code))
}
