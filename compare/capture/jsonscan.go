package capture

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/router/input"
)

// jsonScanner walks a JSON document (RFC 8259) as its bytes arrive. It is faster than a
// general reader because it builds no tokens, and looks at what it skips only to reject
// what is no JSON. As with jsontext, against which it is tested, names may come
// twice and texts need not be UTF-8. Errors stay: after the first one nothing is read.
type jsonScanner struct {
	in     io.Reader
	buffer []byte
	at     int   // the next byte
	kept   int   // the first byte of what is being read
	before int64 // bytes of the document before the buffer
	depth  int
	first  bool   // nothing stands between the last bracket and the next value
	copied []byte // a text without its escapes, or one that the next byte could overwrite
	ended  error  // of the reader, io.EOF at the document's end
	err    error
}

const (
	// tokenLimit bounds one text or number: it is held whole.
	tokenLimit = 1 << 24
	// depthLimit bounds how deep values nest.
	depthLimit = 10_000
)

// more reads behind the buffer's end, after moving what is being read to its beginning.
func (s *jsonScanner) more() bool {
	n := copy(s.buffer, s.buffer[s.kept:])
	s.before += int64(s.kept)
	s.at, s.kept, s.buffer = s.at-s.kept, 0, s.buffer[:n]
	switch {
	case s.err != nil:
		return false
	case n == tokenLimit:
		s.err = &input.Error{Expected: fmt.Sprintf("strings of at most %d bytes", tokenLimit), Found: "a longer one",
			Err: ErrDamaged}
		return false
	case n == cap(s.buffer):
		s.buffer = append(make([]byte, 0, max(1<<16, 2*n)), s.buffer...)
	}
	for n == len(s.buffer) && s.ended == nil {
		var got int
		got, s.ended = s.in.Read(s.buffer[n:cap(s.buffer)])
		s.buffer = s.buffer[:n+got]
	}
	if n == len(s.buffer) {
		if s.err = s.ended; s.err == io.EOF {
			s.err = io.ErrUnexpectedEOF
		}
	}
	return s.err == nil
}

// end fails if anything but white space is left.
func (s *jsonScanner) end() {
	if s.err == nil && s.peek() == 0 && s.at == len(s.buffer) && s.ended == io.EOF {
		s.err = nil
	} else {
		s.fail("the end of the document")
	}
}

// fail tells the byte at which the document is no JSON, unless it has failed already.
func (s *jsonScanner) fail(expected string) {
	if s.err == nil {
		s.err = &input.Error{Position: fmt.Sprintf("byte %d", s.before+int64(s.at)), Expected: expected,
			Found: fmt.Sprintf("%q", s.buffer[s.at:min(s.at+1, len(s.buffer))]), Err: ErrDamaged}
	}
}

// peek is the next byte that is not white space, 0 after an error or at the end.
func (s *jsonScanner) peek() byte {
	if s.at < len(s.buffer) && s.buffer[s.at] > ' ' {
		s.kept = s.at
		return s.buffer[s.at]
	}
	return s.space()
}

// space is peek where there may be white space.
func (s *jsonScanner) space() byte {
	for {
		at, b := s.at, s.buffer
		for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\t' || b[at] == '\r') {
			at++
		}
		s.at, s.kept = at, at
		if at < len(b) {
			return b[at]
		}
		if !s.more() {
			return 0
		}
	}
}

// begin enters an object or a list. A value of another kind is skipped.
func (s *jsonScanner) begin(open byte) bool {
	if s.peek() != open {
		s.skip()
		return false
	}
	s.at++
	s.first = true
	if s.depth++; s.depth > depthLimit {
		s.fail(fmt.Sprintf("at most %d levels", depthLimit))
	}
	return s.err == nil
}

// next goes to the next element of the object or list, and leaves that at its end.
func (s *jsonScanner) next(end byte) bool {
	c := s.peek()
	switch {
	case s.err != nil:
		return false
	case c == end:
		s.at++
		s.depth--
		s.first = false
		return false
	case s.first:
		s.first = false
	case c == ',':
		s.at++
		s.peek()
	default:
		s.fail(fmt.Sprintf("',' or '%c'", end))
	}
	return s.err == nil
}

// name reads the name of a member, which is valid until the next value is read.
func (s *jsonScanner) name() []byte {
	name := s.unescaped()
	if s.at == len(s.buffer) || s.buffer[s.at] != ':' {
		s.copied = append(s.copied[:0], name...)
		name = s.copied
		if s.peek() != ':' {
			s.fail("':'")
			return nil
		}
	}
	s.at++
	return name
}

// value reads a text, a number or a word, which is valid until the next one is read.
// Of a list or an object, which it skips, it returns nothing.
func (s *jsonScanner) value() []byte {
	switch s.peek() {
	case '{', '[':
		s.skip()
		return nil
	case '"':
		return s.unescaped()
	}
	return s.word()
}

// skip reads a value of any kind.
func (s *jsonScanner) skip() {
	switch s.peek() {
	case '{':
		for s.begin('{'); s.next('}'); s.skip() {
			s.name()
		}
	case '[':
		for s.begin('['); s.next(']'); {
			s.skip()
		}
	case '"':
		s.text()
	default:
		s.word()
	}
}

// unescaped reads the text that peek has seen.
func (s *jsonScanner) unescaped() []byte {
	text, escaped := s.text()
	if escaped {
		// the error is of text that is not UTF-8, which is replaced
		s.copied, _ = jsontext.AppendUnquote(s.copied[:0], s.buffer[s.kept:s.at])
		return s.copied
	}
	return text
}

// text reads the text that peek has seen, still with its escapes.
func (s *jsonScanner) text() (text []byte, escaped bool) {
	if s.err != nil || s.at == len(s.buffer) || s.buffer[s.at] != '"' {
		s.fail("a text")
		return nil, false
	}
	for s.at++; ; {
		s.at += plain(s.buffer[s.at:])
		switch {
		case s.at == len(s.buffer):
			if !s.more() {
				return nil, false
			}
		case s.buffer[s.at] == '"':
			s.at++
			return s.buffer[s.kept+1 : s.at-1], escaped
		case s.buffer[s.at] != '\\':
			s.fail("a text without control characters")
			return nil, false
		default:
			escaped = true
			if !s.escape() {
				return nil, false
			}
		}
	}
}

// plain is the number of bytes before the first quote, backslash or control character.
func plain(b []byte) (n int) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; len(b)-n >= 8; n += 8 {
		v := binary.LittleEndian.Uint64(b[n:])
		quote, slash := v^'"'*ones, v^'\\'*ones
		if hit := ((quote-ones)&^quote | (slash-ones)&^slash | (v-' '*ones)&^v) & high; hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

// escape reads a backslash and what belongs to it.
func (s *jsonScanner) escape() bool {
	digits := 0
	for i := 1; i <= 1+digits; i++ {
		if s.at+i >= len(s.buffer) && !s.more() {
			return false
		}
		switch c := s.buffer[s.at+i]; {
		case i == 1 && c == 'u':
			digits = 4
		case i == 1 && strings.IndexByte(`"\/bfnrt`, c) >= 0:
		case i > 1 && (c-'0' < 10 || (c|0x20)-'a' < 6):
		default:
			s.fail("an escape that JSON has")
			return false
		}
	}
	s.at += 2 + digits
	return true
}

// word reads the number, true, false or null that peek has seen.
func (s *jsonScanner) word() []byte {
	if n := number(s.buffer[s.at:]); n > 0 && s.at+n < len(s.buffer) && !inWord(s.buffer[s.at+n]) {
		s.at += n
		return s.buffer[s.kept:s.at]
	}
	for s.err == nil && (s.at < len(s.buffer) || s.more()) && inWord(s.buffer[s.at]) {
		s.at++
	}
	word := s.buffer[s.kept:s.at]
	if s.err == nil && (len(word) == 0 || number(word) < len(word)) && string(word) != "true" &&
		string(word) != "false" && string(word) != "null" {
		s.at = s.kept
		s.fail("a value")
	}
	return word
}

func inWord(c byte) bool {
	return c-'0' < 10 || c == '.' || (c|0x20)-'a' < 26 || c == '-' || c == '+'
}

// number is the length of the number with which b begins, 0 where there is none.
func number(b []byte) (n int) {
	if len(b) > 0 && b[0] == '-' {
		n++
	}
	d := digits(b[n:])
	if d == 0 || d > 1 && b[n] == '0' {
		return 0
	}
	if n += d; n < len(b) && b[n] == '.' {
		if d = digits(b[n+1:]); d == 0 {
			return 0
		}
		n += 1 + d
	}
	if n+1 < len(b) && b[n]|0x20 == 'e' {
		if n++; b[n] == '+' || b[n] == '-' {
			n++
		}
		if d = digits(b[n:]); d == 0 {
			return 0
		}
		n += d
	}
	return n
}

// digits is the number of digits at the beginning.
func digits(b []byte) (n int) {
	for n < len(b) && b[n]-'0' < 10 {
		n++
	}
	return n
}
