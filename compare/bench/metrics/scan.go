package metrics

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of an object, maxValues what is kept of it. Beyond, as many members of the
// object itself are still kept: totals may stand behind the lists of every request.
const (
	maxDepth  = 64
	maxValues = 1 << 17
)

// scanner reads an object by its grammar, over as many lines as it takes. It accepts JSON, the NaN
// and Infinity that Python's json module writes, and the repr of a Python dict, which TensorRT-LLM's
// iteration logs hold: jsontext refuses both.
type scanner struct {
	doc   *document
	text  string
	at    int
	depth int
	err   error // the first one, after which nothing is read
}

func (s *scanner) fail(want string) {
	switch {
	case s.err != nil:
	case s.at >= len(s.text):
		s.err = errors.New("ends before its closing brace")
	default:
		s.err = fmt.Errorf("does not parse: want %s, found %.20q", want, s.text[s.at:])
	}
}

// token is the next byte that is not white space, unread; 0 after an error and at the end.
func (s *scanner) token() byte {
	for ; s.err == nil && s.at < len(s.text); s.at++ {
		if c := s.text[s.at]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// accept consumes the next token if it is c.
func (s *scanner) accept(c byte) bool {
	if s.token() != c {
		return false
	}
	s.at++
	return true
}

// value reads what stands at a path.
func (s *scanner) value(path string) {
	var v any
	switch c := s.token(); c {
	case '{':
		v = object(s.members(path, '}'))
	case '[':
		v = list(s.members(path, ']'))
	case '(': // a Python tuple
		v = list(s.members(path, ')'))
	case '"', '\'':
		v = s.quoted()
	default:
		v = s.word()
	}
	if n := len(s.doc.paths); s.err == nil && (n < maxValues || s.depth <= 1 && n < 2*maxValues) {
		s.doc.set(path, value{is: v})
	}
}

// members reads "key: value, …}" or "value, …]"; a comma may stand behind the last, as in a repr.
func (s *scanner) members(path string, closing byte) (n int) {
	if s.depth++; s.depth > maxDepth {
		s.fail("at most " + strconv.Itoa(maxDepth) + " levels")
	}
	for s.at++; !s.accept(closing) && s.err == nil; n++ {
		if n > 0 && !s.accept(',') {
			s.fail("',' or " + string(closing))
		} else if n > 0 && s.accept(closing) {
			break
		}
		key := ""
		if closing == '}' {
			if key = s.quoted(); !s.accept(':') {
				s.fail("':'")
			}
		} else if len(s.doc.paths) < maxValues { // else nobody asks for it
			key = strconv.Itoa(n)
		}
		if path != "" {
			key = path + "/" + key
		}
		s.value(key)
	}
	s.depth--
	return n
}

var words = map[string]any{"null": nil, "None": nil, "true": true, "True": true, "false": false, "False": false}

// word reads a number or a bare name.
func (s *scanner) word() any {
	w := s.text[min(s.at, len(s.text)):min(len(s.text), s.at+64)]
	if end := strings.IndexAny(w, " \t\r\n,:]})"); end >= 0 {
		w = w[:end]
	}
	v, known := words[w]
	if !known {
		number, err := strconv.ParseFloat(w, 64) // also NaN and Infinity
		if err != nil && !errors.Is(err, strconv.ErrRange) || strings.ContainsAny(w, "xX_") {
			s.fail("a value")
		}
		v = number
	}
	s.at += len(w)
	return v
}

// quoted reads a string, or a key. An escape of Python's that JSON does not have stays as it is.
func (s *scanner) quoted() string {
	quote := s.token()
	if quote != '"' && quote != '\'' {
		s.fail("a key")
		return ""
	}
	begin := s.at + 1
	for s.at = begin; s.at < len(s.text) && s.text[s.at] != quote && s.text[s.at] != '\n'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	if s.at >= len(s.text) || s.text[s.at] != quote {
		s.fail("the end of a string")
		return ""
	}
	text := s.text[begin:s.at]
	s.at++
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	plain, err := jsontext.AppendUnquote(nil, `"`+strings.ReplaceAll(text, `\'`, `'`)+`"`)
	if err == nil {
		return string(plain)
	} else if quote == '"' {
		s.fail("a string")
	}
	return text
}
