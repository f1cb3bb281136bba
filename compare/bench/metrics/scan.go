package metrics

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of an object, maxPath the path to a value that is kept, and maxValues their number.
// Beyond, as many members of the object itself are still kept: totals may stand behind the lists of every request.
const (
	maxDepth  = 64
	maxPath   = 512
	maxValues = 1 << 17
)

// scanner reads an object by its grammar, over as many lines as it takes. It accepts JSON, the NaN
// and Infinity that Python's json module writes, and the repr of a Python dict, which TensorRT-LLM's
// iteration logs hold: jsontext refuses both.
type scanner struct {
	doc   *document
	text  string
	at    int    // behind the token
	token string // one of {}[],: or a text with its quotes, or a bare word; "" at the end
	depth int
	err   error // the first one, after which nothing is read
}

func (s *scanner) fail(want string) {
	if s.err == nil && s.at >= len(s.text) {
		s.err = errors.New("ends before its closing brace")
	} else if s.err == nil {
		s.err = fmt.Errorf("does not parse: want %s, found %.20q", want, s.token)
	}
}

// next takes a token.
func (s *scanner) next() string {
	rest := strings.TrimLeft(s.text[s.at:], " \t\r\n")
	begin := len(s.text) - len(rest)
	switch s.at = begin; {
	case rest == "":
	case strings.IndexByte("{}[],:", rest[0]) >= 0:
		s.at++
	case rest[0] == '"', rest[0] == '\'':
		for s.at++; s.at < len(s.text) && s.text[s.at] != rest[0] && s.text[s.at] != '\n'; s.at++ {
			if s.text[s.at] == '\\' {
				s.at++
			}
		}
		s.at = min(s.at+1, len(s.text))
	default:
		for s.at < len(s.text) && strings.IndexByte(" \t\r\n,:]})", s.text[s.at]) < 0 {
			s.at++
		}
	}
	s.token = s.text[begin:s.at]
	return s.token
}

// value reads what stands at a path and begins with the token.
func (s *scanner) value(path string) {
	var v any
	switch s.token {
	case "{":
		v = object(s.members(path, "}"))
	case "[":
		v = list(s.members(path, "]"))
	default:
		v = s.scalar()
	}
	if n := len(s.doc.paths); s.err == nil && len(path) <= maxPath && (n < maxValues || s.depth <= 1 && n < 2*maxValues) {
		s.doc.set(path, value{is: v})
	}
}

// members reads "key: value, …}" or "value, …]"; a comma may stand behind the last, as in a repr.
func (s *scanner) members(path, closing string) (n int) {
	if s.depth++; s.depth > maxDepth {
		s.fail("at most " + strconv.Itoa(maxDepth) + " levels")
	}
	for s.next(); s.token != closing && s.err == nil; n++ {
		key := strconv.Itoa(n)
		if closing == "}" {
			var text bool
			if key, text = s.scalar().(string); !text || s.next() != ":" {
				s.fail("a key and ':'")
			}
			s.next()
		}
		if len(path) > maxPath {
			key = path // as long as it, and not kept either
		} else if path != "" {
			key = path + "/" + key
		}
		if s.value(key); s.next() == "," {
			s.next()
		} else if s.token != closing {
			s.fail("',' or " + closing)
		}
	}
	s.depth--
	return n
}

var words = map[string]any{"null": nil, "None": nil, "true": true, "True": true, "false": false, "False": false}

// scalar is the value of a token: a text, a number or a bare name. An escape of Python's that JSON does not have
// stays as it is.
func (s *scanner) scalar() any {
	if s.token == "" || s.token[0] != '"' && s.token[0] != '\'' {
		if v, known := words[s.token]; known {
			return v
		}
		number, err := strconv.ParseFloat(s.token, 64) // also NaN and Infinity
		if err != nil && !errors.Is(err, strconv.ErrRange) || strings.ContainsAny(s.token, "xX_") {
			s.fail("a value")
		}
		return number
	}
	last := len(s.token) - 1
	if last == 0 || s.token[last] != s.token[0] {
		s.fail("the end of a string")
		return ""
	}
	text := s.token[1:last]
	plain, err := jsontext.AppendUnquote(nil, `"`+strings.ReplaceAll(text, `\'`, `'`)+`"`)
	if err == nil {
		return string(plain)
	} else if s.token[0] == '"' {
		s.fail("a string")
	}
	return text
}
