package nsys

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonScanner walks one JSON value from a stream, in memory that grows with the
// longest string and with nothing else. The caller asks for what it expects and
// skips the rest; errSyntax says where the text is not what JSON allows.
type jsonScanner struct {
	in     *bufio.Reader
	at     int64 // bytes consumed
	depth  int
	buffer []byte
}

var errSyntax = errors.New("not valid JSON")

const (
	jsonDepth  = 512     // values inside values
	jsonString = 1 << 24 // bytes of one string
)

func newJSONScanner(r io.Reader) *jsonScanner {
	return &jsonScanner{in: bufio.NewReaderSize(r, 1<<16)}
}

func (s *jsonScanner) fail(format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s", errSyntax, s.at, fmt.Sprintf(format, args...))
}

// next consumes one byte; an end here is always too early.
func (s *jsonScanner) next() (byte, error) {
	c, err := s.in.ReadByte()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		s.at++
	}
	return c, err
}

func (s *jsonScanner) back() {
	_ = s.in.UnreadByte() // follows a successful ReadByte
	s.at--
}

// peek skips white space and shows the byte behind it.
func (s *jsonScanner) peek() (byte, error) {
	for {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			s.back()
			return c, nil
		}
	}
}

// end checks that nothing but white space is left.
func (s *jsonScanner) end() error {
	for {
		switch c, err := s.in.ReadByte(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case c != ' ' && c != '\n' && c != '\t' && c != '\r':
			return s.fail("there is more behind its end: %q", c)
		}
	}
}

// expect consumes one byte behind white space.
func (s *jsonScanner) expect(want byte) error {
	c, err := s.peek()
	if err == nil && c != want {
		err = s.fail("want %q, have %q", want, c)
	}
	if err == nil {
		_, err = s.next()
	}
	return err
}

// object visits the members of an object; visit must consume the value, and must
// not keep the key.
func (s *jsonScanner) object(visit func(key []byte) error) error {
	return s.list('{', '}', func() error {
		key, err := s.text()
		if err == nil {
			err = s.expectColon(key)
		}
		if err != nil {
			return err
		}
		return visit(key)
	})
}

// expectColon keeps the key, which lies in the buffer of strings.
func (s *jsonScanner) expectColon([]byte) error { return s.expect(':') }

// array visits the elements of an array; visit must consume each.
func (s *jsonScanner) array(visit func() error) error { return s.list('[', ']', visit) }

func (s *jsonScanner) list(open, end byte, visit func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.depth++; s.depth > jsonDepth {
		return s.fail("more than %d values inside each other", jsonDepth)
	}
	defer func() { s.depth-- }()
	for first := true; ; first = false {
		c, err := s.peek()
		if err != nil {
			return err
		}
		if c == end && first {
			_, err = s.next()
			return err
		}
		if !first {
			if _, err := s.next(); err != nil || c == end {
				return err
			}
			if c != ',' {
				return s.fail("want %q or ',', have %q", end, c)
			}
		}
		if err := visit(); err != nil {
			return err
		}
	}
}

// text reads a string; it is valid until the next one is read.
func (s *jsonScanner) text() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	s.buffer = s.buffer[:0]
	for {
		c, err := s.next()
		if err != nil {
			return nil, err
		}
		switch {
		case c == '"':
			return s.buffer, nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		default:
			s.buffer = append(s.buffer, c)
		}
		if len(s.buffer) > jsonString {
			return nil, s.fail("a string of more than %d bytes", jsonString)
		}
	}
}

// escape reads what follows a backslash.
func (s *jsonScanner) escape() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	switch c {
	case '"', '\\', '/':
		s.buffer = append(s.buffer, c)
	case 'b':
		s.buffer = append(s.buffer, '\b')
	case 'f':
		s.buffer = append(s.buffer, '\f')
	case 'n':
		s.buffer = append(s.buffer, '\n')
	case 'r':
		s.buffer = append(s.buffer, '\r')
	case 't':
		s.buffer = append(s.buffer, '\t')
	case 'u':
		return s.escapedRune()
	default:
		return s.fail("want an escape, have %q", c)
	}
	return nil
}

// escapedRune reads four hexadecimal digits, and the second half of a surrogate
// pair if one follows; a lone half becomes the replacement character.
func (s *jsonScanner) escapedRune() error {
	first, err := s.hex4()
	if err != nil {
		return err
	}
	r := first
	if utf16.IsSurrogate(r) {
		ahead, _ := s.in.Peek(6)
		r = utf8.RuneError
		if low, err := strconv.ParseUint(strings.TrimPrefix(string(ahead), `\u`), 16, 16); len(ahead) == 6 && ahead[0] == '\\' && err == nil {
			if r = utf16.DecodeRune(first, rune(low)); r != utf8.RuneError {
				_, _ = s.in.Discard(6)
				s.at += 6
			}
		}
	}
	s.buffer = utf8.AppendRune(s.buffer, r)
	return nil
}

func (s *jsonScanner) hex4() (r rune, err error) {
	for range 4 {
		c, err := s.next()
		if err != nil {
			return 0, err
		}
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, s.fail("want a hexadecimal digit, have %q", c)
		}
		r = r<<4 | rune(c)
	}
	return r, nil
}

// word reads a number or a bare word (true, null, and NaN, which some writers
// use); it is valid until the next string or word is read.
func (s *jsonScanner) word() ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, err
	}
	s.buffer = s.buffer[:0]
	for {
		c, err := s.next()
		if err == io.ErrUnexpectedEOF && len(s.buffer) > 0 {
			return s.buffer, nil
		}
		if err != nil {
			return nil, err
		}
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '+' || c == '-') {
			s.back()
			break
		}
		if s.buffer = append(s.buffer, c); len(s.buffer) > 64 {
			return nil, s.fail("a word of more than 64 bytes")
		}
	}
	if len(s.buffer) == 0 {
		c, _ := s.peek()
		return nil, s.fail("want a value, have %q", c)
	}
	return s.buffer, nil
}

// scalar reads a string or a word, and skips what is neither, for which it
// returns nil.
func (s *jsonScanner) scalar() ([]byte, error) {
	c, err := s.peek()
	switch {
	case err != nil:
		return nil, err
	case c == '"':
		return s.text()
	case c == '{' || c == '[':
		return nil, s.skip()
	}
	return s.word()
}

// skip consumes any value.
func (s *jsonScanner) skip() error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	switch c {
	case '{':
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		_, err = s.text()
		return err
	}
	_, err = s.word()
	return err
}
