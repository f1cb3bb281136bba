package capture

import (
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
	in       io.Reader
	window   []byte // what was read; window[from:] is ahead
	from     int
	consumed int64 // bytes before the window
	depth    int
	buffer   []byte // of the last string or word
}

var errSyntax = errors.New("not valid JSON")

const (
	jsonDepth  = 512     // values inside values
	jsonString = 1 << 24 // bytes of one string
)

func newJSONScanner(r io.Reader) *jsonScanner {
	return &jsonScanner{in: r, window: make([]byte, 0, 1<<16)}
}

func (s *jsonScanner) fail(format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s", errSyntax, s.consumed+int64(s.from), fmt.Sprintf(format, args...))
}

// more reads on, keeping what is ahead. It returns io.EOF only where nothing came.
func (s *jsonScanner) more() error {
	s.consumed += int64(s.from)
	s.window = s.window[:copy(s.window, s.window[s.from:])]
	s.from = 0
	for range 100 {
		n, err := s.in.Read(s.window[len(s.window):cap(s.window)])
		s.window = s.window[:len(s.window)+n]
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// next consumes one byte; an end here is always too early.
func (s *jsonScanner) next() (byte, error) {
	if s.from == len(s.window) {
		if err := s.more(); err != nil {
			return 0, tooEarly(err)
		}
	}
	c := s.window[s.from]
	s.from++
	return c, nil
}

func tooEarly(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// blank skips white space; the error at the end of the text is io.EOF.
func (s *jsonScanner) blank() error {
	for {
		for s.from < len(s.window) {
			if !space(s.window[s.from]) {
				return nil
			}
			s.from++
		}
		if err := s.more(); err != nil {
			return err
		}
	}
}

// peek skips white space and shows the byte behind it.
func (s *jsonScanner) peek() (byte, error) {
	if err := s.blank(); err != nil {
		return 0, tooEarly(err)
	}
	return s.window[s.from], nil
}

// end checks that nothing but white space is left.
func (s *jsonScanner) end() error {
	switch err := s.blank(); err {
	case io.EOF:
		return nil
	case nil:
		return s.fail("there is more behind its end: %q", s.window[s.from])
	default:
		return err
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
		plain := s.from
		for plain < len(s.window) && s.window[plain] != '"' && s.window[plain] != '\\' {
			plain++
		}
		s.buffer = append(s.buffer, s.window[s.from:plain]...)
		s.from = plain
		if len(s.buffer) > jsonString {
			return nil, s.fail("a string of more than %d bytes", jsonString)
		}
		if plain == len(s.window) {
			if err := s.more(); err != nil {
				return nil, tooEarly(err)
			}
			continue
		}
		s.from++
		if s.window[plain] == '"' {
			return s.buffer, nil
		}
		if err := s.escape(); err != nil {
			return nil, err
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
		for len(s.window)-s.from < 6 && s.more() == nil { // a second half may follow
		}
		ahead := s.window[s.from:min(len(s.window), s.from+6)]
		r = utf8.RuneError
		if low, err := strconv.ParseUint(strings.TrimPrefix(string(ahead), `\u`), 16, 16); len(ahead) == 6 && ahead[0] == '\\' && err == nil {
			if r = utf16.DecodeRune(first, rune(low)); r != utf8.RuneError {
				s.from += 6
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
		if s.from == len(s.window) {
			if err := s.more(); err == io.EOF {
				break // a bare word may end the text
			} else if err != nil {
				return nil, err
			}
		}
		c := s.window[s.from]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '+' || c == '-') {
			break
		}
		s.from++
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
