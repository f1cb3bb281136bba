package capture

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

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
	token  int   // where the text or word that is being read begins; bytes before it may go
	at     int   // the next byte
	before int64 // bytes of the document before the buffer
	depth  int
	first  bool   // nothing stands between the last bracket and the next value
	copied []byte // a text without its escapes
	ended  bool   // no byte follows
	err    error
}

const (
	// tokenLimit bounds a text or a word, which is held whole.
	tokenLimit = 1 << 24
	// depthLimit bounds how deep values nest.
	depthLimit = 10_000
)

// more reads more of the document, and moves the token to the front. It is false where nothing follows.
func (s *jsonScanner) more() bool {
	n := copy(s.buffer, s.buffer[s.token:])
	s.before, s.at, s.token = s.before+int64(s.token), s.at-s.token, 0
	if s.buffer = s.buffer[:n]; 2*n >= cap(s.buffer) {
		s.buffer = append(make([]byte, 0, max(1<<16, 4*n)), s.buffer...)
	}
	for got := 0; s.err == nil && got == 0; {
		var err error
		if got, err = s.in.Read(s.buffer[n:cap(s.buffer)]); got > 0 {
			err = nil // it comes again
		}
		s.buffer = s.buffer[:n+got]
		switch s.ended = err == io.EOF; {
		case n >= tokenLimit:
			s.err = &input.Error{Expected: fmt.Sprintf("texts of at most %d bytes", tokenLimit), Found: "a longer one"}
		case s.ended:
			s.err = io.ErrUnexpectedEOF
		default:
			s.err = err
		}
	}
	return s.err == nil
}

// end fails if anything but white space is left.
func (s *jsonScanner) end() {
	if s.err != nil {
		return
	}
	if s.peek(); s.ended {
		s.err = nil
	} else {
		s.fail("the end of the document")
	}
}

// fail tells the byte at which the document is no JSON.
func (s *jsonScanner) fail(expected string) {
	if s.err == nil {
		s.err = &input.Error{Position: fmt.Sprintf("byte %d", s.before+int64(s.at)), Expected: expected,
			Found: fmt.Sprintf("%q", s.buffer[s.at:s.at+1])}
	}
}

// peek is the next byte that is not white space, 0 after an error.
func (s *jsonScanner) peek() byte {
	for s.err == nil {
		for ; s.at < len(s.buffer); s.at++ {
			if c := s.buffer[s.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				return c
			}
		}
		s.token = s.at
		s.more()
	}
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
		s.at--
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
	if s.at == len(s.buffer) || s.buffer[s.at] != ':' {
		s.copied = append(s.copied[:0], name...) // to look further moves the buffer
		if name = s.copied; s.peek() != ':' {
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

// text reads a text.
func (s *jsonScanner) text() []byte {
	if s.peek() != '"' {
		s.fail("a text")
		return nil
	}
	escaped := false
	for s.token, s.at = s.at, s.at+1; s.err == nil; {
		s.at += plain(s.buffer[s.at:])
		switch {
		case s.at == len(s.buffer):
			s.more()
		case s.buffer[s.at] == '\t' || s.buffer[s.at] == '\n' || s.buffer[s.at] == '\r': // profilers let names through
			s.buffer[s.at] = ' '
		case s.buffer[s.at] < ' ':
			s.fail("a text without control characters")
		case s.buffer[s.at] == '"':
			if s.at++; escaped {
				return s.unescaped(s.buffer[s.token:s.at])
			}
			return s.buffer[s.token+1 : s.at-1]
		default: // a backslash and what it escapes
			if escaped = true; s.at+1 < len(s.buffer) || s.more() {
				s.at += 2
			}
		}
	}
	return nil
}

// unescaped is a text without quotes and escapes.
func (s *jsonScanner) unescaped(quoted []byte) []byte {
	if !jsontext.Value(quoted).IsValid(jsontext.AllowInvalidUTF8(true)) {
		s.at = s.token
		s.fail("escapes that JSON has")
	}
	s.copied, _ = jsontext.AppendUnquote(s.copied[:0], quoted) // the error is of what is not UTF-8, which is replaced
	return s.copied
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

// word reads a number, true, false or null, and what profilers have written for numbers, such as inf for the bandwidth
// of a copy that took 0 ns. Who asks for a number judges what it is.
func (s *jsonScanner) word() []byte {
	s.token = s.at
	for s.err == nil && (s.at < len(s.buffer) || s.more()) && inWord(s.buffer[s.at]) {
		s.at++
	}
	if s.err != nil {
		return nil
	}
	if s.at == s.token {
		s.fail("a value")
	}
	return s.buffer[s.token:s.at]
}

func inWord(c byte) bool {
	return c-'0' < 10 || c == '.' || (c|0x20)-'a' < 26 || c == '-' || c == '+'
}
