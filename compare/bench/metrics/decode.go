package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of a document, maxString the bytes kept of one string in it
// (generated texts are long and never needed). Beyond the budget, maxMembers of the document
// itself are still kept: totals may stand after the lists of every request.
const (
	maxDepth   = 64
	maxString  = 256
	maxMembers = 1 << 10
)

// decoder reads one object by its grammar, over as many lines as it takes. It accepts JSON, the NaN
// and Infinity that Python's json module writes, and the repr of a Python dict, which TensorRT-LLM's
// iteration logs hold: jsontext refuses both.
type decoder struct {
	*source
	doc     *document
	budget  int
	members int   // kept beyond the budget
	failed  error // the first one, after which nothing is read
}

// errCut is an object that ends before its closing brace, errTwice the cause of an error about two
// values of one thing.
var (
	errCut   = errors.New("ends before its closing brace")
	errTwice = errors.New("two values")
)

// decodeObject reads the object whose opening brace is the next byte into the document.
func decodeObject(s *source, doc *document) error {
	d := &decoder{source: s, doc: doc, budget: maxElements}
	d.expect('{')
	d.object("", 1)
	return d.failed
}

func (d *decoder) fail(err error) {
	if d.failed == nil {
		d.failed = err
	}
}

// peek is the next byte; 0 after an error.
func (d *decoder) peek() byte {
	switch {
	case d.failed != nil:
		return 0
	case d.at < len(d.text) || d.fill():
		return d.text[d.at]
	case d.err == io.EOF:
		d.fail(errCut)
	default:
		d.fail(d.err)
	}
	return 0
}

// token is the next byte that is not white space, unread; 0 after an error.
func (d *decoder) token() byte {
	c := d.peek()
	for ; c == ' ' || c == '\t' || c == '\r' || c == '\n'; c = d.peek() {
		d.at++
	}
	return c
}

// accept consumes the next token if it is c.
func (d *decoder) accept(c byte) bool {
	ok := d.token() == c && d.failed == nil
	if ok {
		d.at++
	}
	return ok
}

func (d *decoder) expect(want byte) {
	if !d.accept(want) {
		d.fail(fmt.Errorf("want %q, found %q", want, d.token()))
	}
}

// sequence reads "one, one, …" and the closing byte, also after a trailing comma, as a repr may have.
func (d *decoder) sequence(closing byte, one func()) {
	for d.failed == nil && !d.accept(closing) {
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
	return d.failed == nil && d.budget >= 0
}

// object reads "key: value, …}" after the opening brace.
func (d *decoder) object(path string, depth int) {
	d.sequence('}', func() {
		quote := d.token()
		if quote != '"' && quote != '\'' {
			d.fail(fmt.Errorf("want a key, found %q", quote))
			return
		}
		at := path + d.quoted(quote)
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

// list reads "value, …]" after the opening bracket. Lists and objects in it have paths of their own.
func (d *decoder) list(closing byte, path string, depth int) *list {
	l := &list{}
	d.sequence(closing, func() {
		at := path
		if c := d.token(); d.budget > 0 && (c == '{' || c == '[') {
			at += "/" + strconv.Itoa(len(l.items))
		}
		v := d.value(at, depth)
		if !d.keep() {
			l.dropped++
			return
		}
		l.items = append(l.items, v)
		if _, nested := v.(*list); nested {
			d.doc.set(at, v)
		}
	})
	return l
}

func (d *decoder) value(path string, depth int) any {
	c := d.token()
	if depth >= maxDepth {
		d.fail(fmt.Errorf("nested deeper than %d", maxDepth))
	}
	if d.failed != nil {
		return nil
	}
	switch c {
	case '{':
		d.at++
		d.object(path+"/", depth+1)
		return object{}
	case '[', '(': // a Python tuple
		d.at++
		return d.list(map[byte]byte{'[': ']', '(': ')'}[c], path, depth+1)
	case '"', '\'':
		return d.quoted(c)
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
	for c := d.peek(); d.failed == nil && strings.IndexByte(" \t\r\n,:]})", c) < 0; c = d.peek() {
		if len(b) == cap(b) {
			d.fail(fmt.Errorf("want a value, found %q…", string(b)))
			return nil
		}
		b = append(b, c)
		d.at++
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

// quoted reads a string. It keeps at most maxString bytes and lets any byte through, so that Latin-1
// output is read too. An escape of Python's that JSON does not have stays as it is.
func (d *decoder) quoted(quote byte) string {
	d.at++
	var b []byte
	escaped, stops := false, "\n\\"+string(quote)
	for d.failed == nil {
		switch d.peek() {
		case '\n':
			d.fail(errors.New("line ends inside a string"))
		case quote:
			d.at++
			d.budget -= len(b) / 32
			if text, err := jsontext.AppendUnquote(nil, `"`+string(b)+`"`); escaped && err == nil {
				return string(text)
			} else if escaped && quote == '"' && len(b) < maxString {
				d.fail(err)
			}
			return string(b)
		case '\\':
			if d.at++; d.peek() == '\n' || d.failed != nil {
				continue
			}
			if escaped = true; len(b) < maxString-1 && d.peek() == '\'' {
				b = append(b, '\'')
			} else if len(b) < maxString-1 {
				b = append(b, '\\', d.peek())
			}
			d.at++
		default:
			plain := d.text[d.at:]
			if end := bytes.IndexAny(plain, stops); end >= 0 {
				plain = plain[:end]
			}
			b = append(b, plain[:min(len(plain), max(0, maxString-len(b)))]...)
			d.at += len(plain)
		}
	}
	return ""
}
