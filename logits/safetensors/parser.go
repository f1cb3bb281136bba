package safetensors

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// parser reads the JSON of a header itself, and leaves to encoding/json only what
// it has no use for. That decoder lets the last of two equal keys win, and takes
// most of the time of a folder whose headers describe a hundred thousand tensors.
type parser struct {
	name    string // of the file
	text    string // strings without escapes are parts of it
	at      int
	reading *Tensor // whose description is being read, for errors
}

func (p *parser) errorf(format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	if p.reading != nil {
		msg = fmt.Sprintf("tensor %q: %s", p.reading.Name, msg)
	}
	return &FormatError{Name: p.name, Offset: lengthBytes + int64(p.at), Msg: msg}
}

// space passes over white space.
func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// take passes over c, and white space before it, if that is what comes next.
func (p *parser) take(c byte) bool {
	p.space()
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

// unwanted is the error of what comes next in place of what is wanted.
func (p *parser) unwanted(what, want string) error {
	begin := p.at
	have, err := p.value()
	if err != nil {
		return err
	}
	p.at = begin
	return p.errorf("%s: want %s, have %.40q", what, want, have)
}

// value passes over a value of any kind and returns its text.
func (p *parser) value() (string, error) {
	if p.space(); p.at == len(p.text) {
		return "", p.errorf("the header's JSON ends too early")
	}
	dec, begin := json.NewDecoder(strings.NewReader(p.text[p.at:])), p.at
	var ignored json.RawMessage
	if err := dec.Decode(&ignored); err != nil {
		return "", p.errorf("the header is not JSON: %v", err)
	}
	p.at += int(dec.InputOffset())
	return p.text[begin:p.at], nil
}

// list reads a comma-separated list between two brackets, calling item at each.
func (p *parser) list(what string, open, end byte, item func() error) error {
	if !p.take(open) {
		return p.unwanted(what, string(open))
	}
	if p.take(end) {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if p.take(end) {
			return nil
		}
		if !p.take(',') {
			return p.unwanted(what, ", or "+string(end))
		}
	}
}

// object reads an object, calling value for each key, and refuses a second key
// of the same name.
func (p *parser) object(what string, value func(key string) error) error {
	seen := map[string]bool{}
	return p.list(what, '{', '}', func() error {
		key, err := p.string("key")
		if err != nil {
			return err
		}
		if seen[key] {
			return p.errorf("%s: key %q appears twice", what, key)
		}
		seen[key] = true
		if !p.take(':') {
			return p.unwanted(what, ":")
		}
		return value(key)
	})
}

// string reads a string.
func (p *parser) string(what string) (string, error) {
	if !p.take('"') {
		return "", p.unwanted(what, "a string")
	}
	for i := p.at; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			s := p.text[p.at:i]
			p.at = i + 1
			return s, nil
		case c == '\\' || c < ' ':
			return p.escaped()
		}
	}
	return "", p.errorf("the header's JSON ends too early")
}

// escaped reads a string that holds more than plain text, from after its first
// quote.
func (p *parser) escaped() (s string, err error) {
	p.at--
	text, err := p.value()
	if err == nil {
		err = json.Unmarshal([]byte(text), &s)
	}
	return s, err
}

// integers reads an array of whole numbers from 0 to 2⁶³ − 1.
func (p *parser) integers(what string) ([]int64, error) {
	list := []int64{}
	err := p.list(what, '[', ']', func() error {
		p.space()
		rest := p.text[p.at:]
		if end := strings.IndexAny(rest, ",]} \t\r\n"); end >= 0 {
			rest = rest[:end]
		}
		n, err := strconv.ParseUint(rest, 10, 63)
		if err != nil || rest[0] == '0' && len(rest) > 1 {
			return p.errorf("%s: want whole numbers from 0 to 2^63-1, have %.40q", what, rest)
		}
		p.at += len(rest)
		list = append(list, int64(n))
		return nil
	})
	return list, err
}
