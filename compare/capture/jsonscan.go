package capture

import (
	"bytes"
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
//
// What is read within whole sees the bytes that are there and fails at their end; then it is
// read again with more of them. So nothing else waits for bytes.
type jsonScanner struct {
	in     io.Reader
	buffer []byte
	at     int   // the next byte
	before int64 // bytes of the document before the buffer
	depth  int
	first  bool   // nothing stands between the last bracket and the next value
	copied []byte // a text without its escapes
	ended  error  // of the reader, io.EOF at the document's end
	err    error
}

const (
	// elementLimit bounds what is read in one: it is held whole.
	elementLimit = 1 << 24
	// depthLimit bounds how deep values nest.
	depthLimit = 10_000
)

// whole reads an element of the document, and reads it again while more of it arrives.
func (s *jsonScanner) whole(read func()) {
	for s.err == nil {
		at, depth, first := s.at, s.depth, s.first
		if read(); s.err != io.ErrUnexpectedEOF {
			return
		}
		if s.ended != nil && s.ended != io.EOF {
			s.err = s.ended
		} else if s.ended == nil {
			s.at, s.depth, s.first, s.err = at, depth, first, nil
			s.more()
		}
	}
}

// more reads as much again as is not yet read of the buffer, or more.
func (s *jsonScanner) more() {
	n := copy(s.buffer, s.buffer[s.at:])
	s.before, s.at, s.buffer = s.before+int64(s.at), 0, s.buffer[:n]
	if n >= elementLimit {
		s.err = &input.Error{Expected: fmt.Sprintf("elements of at most %d bytes", elementLimit), Found: "a longer one",
			Err: ErrDamaged}
		return
	}
	if 2*n >= cap(s.buffer) {
		s.buffer = append(make([]byte, 0, max(1<<16, 4*n)), s.buffer...)
	}
	for len(s.buffer) < 2*n+1 && s.ended == nil {
		var got int
		got, s.ended = s.in.Read(s.buffer[len(s.buffer):cap(s.buffer)])
		s.buffer = s.buffer[:len(s.buffer)+got]
	}
}

// element reads the next element of the object or list; it is false at their end.
func (s *jsonScanner) element(end byte, read func()) (there bool) {
	s.whole(func() {
		if there = s.next(end); there {
			read()
		}
	})
	return there && s.err == nil
}

// pass reads a value of any kind, a list or an object element by element.
func (s *jsonScanner) pass() {
	open := byte(0)
	s.whole(func() {
		if open = s.peek(); open == '{' || open == '[' {
			s.begin(open)
		} else {
			s.skip()
		}
	})
	switch open {
	case '{':
		for s.element('}', func() { s.name(); s.skip() }) {
		}
	case '[':
		for s.element(']', s.skip) {
		}
	}
}

// end fails if anything but white space is left.
func (s *jsonScanner) end() {
	if s.err != nil {
		return
	}
	s.whole(func() {
		if s.peek(); s.err == nil {
			s.fail("the end of the document")
		}
	})
	if s.err == io.ErrUnexpectedEOF && s.ended == io.EOF {
		s.err = nil
	}
}

// fail tells the byte at which the document is no JSON, or that no byte is there.
func (s *jsonScanner) fail(expected string) {
	switch {
	case s.err != nil:
	case s.at == len(s.buffer):
		s.err = io.ErrUnexpectedEOF
	default:
		s.err = &input.Error{Position: fmt.Sprintf("byte %d", s.before+int64(s.at)), Expected: expected,
			Found: fmt.Sprintf("%q", s.buffer[s.at:s.at+1]), Err: ErrDamaged}
	}
}

// peek is the next byte that is not white space, 0 after an error.
func (s *jsonScanner) peek() byte {
	for ; s.at < len(s.buffer); s.at++ {
		if c := s.buffer[s.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	s.fail("more")
	return 0
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

// name reads the name of a member.
func (s *jsonScanner) name() []byte {
	name := s.text()
	if s.peek() != ':' {
		s.fail("':'")
		return nil
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
		return s.text()
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
	default:
		s.value()
	}
}

// text reads the text that peek has seen.
func (s *jsonScanner) text() []byte {
	if s.err != nil || s.at == len(s.buffer) || s.buffer[s.at] != '"' {
		s.fail("a text")
		return nil
	}
	begin, escaped := s.at, false
	for s.at++; s.err == nil; {
		s.at += plain(s.buffer[s.at:])
		switch {
		case s.at == len(s.buffer) || s.buffer[s.at] < ' ':
			s.fail("a text without control characters")
		case s.buffer[s.at] == '\\':
			escaped = true
			s.escape()
		default:
			s.at++
			if !escaped {
				return s.buffer[begin+1 : s.at-1]
			}
			// the error is of text that is not UTF-8, which is replaced
			s.copied, _ = jsontext.AppendUnquote(s.copied[:0], s.buffer[begin:s.at])
			return s.copied
		}
	}
	return nil
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
func (s *jsonScanner) escape() {
	digits := 0
	for s.at++; ; digits-- {
		c := byte(0)
		if s.at < len(s.buffer) {
			c = s.buffer[s.at]
		}
		switch {
		case digits > 0 && (c-'0' < 10 || (c|0x20)-'a' < 6):
		case digits == 0 && c == 'u':
			digits = 5
		case digits == 0 && strings.IndexByte(`"\/bfnrt`, c) >= 0:
			digits = 1
		default:
			s.fail("an escape that JSON has")
			return
		}
		if s.at++; digits == 1 {
			return
		}
	}
}

// word reads the number, true, false or null that peek has seen.
func (s *jsonScanner) word() []byte {
	rest := s.buffer[s.at:]
	n := number(rest)
	for _, word := range words {
		if n == 0 && bytes.HasPrefix(rest, word) {
			n = len(word)
		}
	}
	end := n
	for end < len(rest) && inWord(rest[end]) {
		end++
	}
	if end == len(rest) {
		s.at = len(s.buffer)
	}
	if n == 0 || end > n || end == len(rest) {
		s.fail("a value")
		return nil
	}
	s.at += n
	return rest[:n]
}

var words = [][]byte{[]byte("true"), []byte("false"), []byte("null")}

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
