package capture

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
)

// scanned writes every bracket, name and value that the scanner sees of a document.
func scanned(in io.Reader) (string, error) {
	s := &jsonScanner{in: in}
	var out strings.Builder
	var walk func()
	walk = func() {
		switch c := s.peek(); c {
		case '{':
			out.WriteString("{")
			for s.begin('{'); s.next('}'); walk() {
				fmt.Fprintf(&out, "%q:", s.name())
			}
			out.WriteString("}")
		case '[':
			out.WriteString("[")
			for s.begin('['); s.next(']'); {
				walk()
			}
			out.WriteString("]")
		default:
			fmt.Fprintf(&out, "%q,", s.value())
		}
	}
	walk()
	s.end()
	return out.String(), s.err
}

// decoded is the same by jsontext.
func decoded(in io.Reader) (string, error) {
	d := jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var out strings.Builder
	for {
		if d.StackDepth() == 0 && out.Len() > 0 {
			if _, err := d.ReadToken(); err != io.EOF {
				return "", fmt.Errorf("more behind the end: %v", err)
			}
			return out.String(), nil
		}
		switch d.PeekKind() {
		case '{', '[', '}', ']':
			token, err := d.ReadToken()
			if err != nil {
				return "", err
			}
			out.WriteString(token.String())
			continue
		}
		kind, n := d.StackIndex(d.StackDepth())
		value, err := d.ReadValue()
		if err != nil {
			return "", err
		}
		if value[0] == '"' && bytes.IndexByte(value, '\\') >= 0 {
			value, _ = jsontext.AppendUnquote(nil, value)
		} else if value[0] == '"' {
			value = value[1 : len(value)-1]
		}
		end := ","
		if kind == '{' && n%2 == 0 {
			end = ":"
		}
		fmt.Fprintf(&out, "%q%s", value, end)
	}
}

// compareScanners holds the scanner against jsontext, with the document whole and byte
// by byte.
func compareScanners(t *testing.T, text []byte) {
	t.Helper()
	if start := bytes.TrimLeft(text, " \t\r\n"); len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return // taken for no trace
	}
	want, wrong := decoded(bytes.NewReader(text))
	for _, in := range []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text)),
		iotest.DataErrReader(bytes.NewReader(text))} {
		have, err := scanned(in)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%.200q: jsontext says %v, the scanner %v", text, wrong, err)
		}
		if err == nil && have != want {
			t.Fatalf("%.200q: jsontext reads\n%s, the scanner\n%s", text, want, have)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `[1,]`, `[,1]`, `{"a":1,}`, `{"a" : [ true , false,null ] , "a":-0.5e+10}`, `[01]`, `[1.]`, `[.5]`,
		`[-]`, `[1e]`, `[1E-]`, `[1e5]`, `[+1]`, `[tru]`, `[truee]`, `{a:1}`, `{"a",1}`, `{"a"}`, `{1:2}`, `[1 2]`,
		`[}`, `{]`, `[[]`, `[]]`, `{} x`,
		`["\u00e9\ud83d\ude00\ud83d\"\\\/\b\f\n\r\t"]`, `["\u12g4"]`, `["\x"]`, "[\"a\tb\"]", "[\"\x7f\x80\xff\"]",
		`{"traceEvents\n": 1}`, `["` + strings.Repeat("a", 20) + `\n` + strings.Repeat("é", 9) + `"]`, "[\x00]",
		"[1]\x00", "\ufeff[]",
		strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), strings.Repeat("[", 10_000) +
			strings.Repeat("]", 10_000), strings.Repeat(`{"":`, 9_999) + `[]` + strings.Repeat("}", 9_999),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(compareScanners)
}

// What profilers write is read alike, whole, cut and damaged.
func TestScannerOnTraces(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/torch/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	const other = "\"\\{}[]:,-.eEu0129 \n\x00\xff"
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		compareScanners(t, text)
		text = text[:min(len(text), 600)]
		for n := range text {
			compareScanners(t, text[:n])
		}
		for range 4000 {
			from := rng.IntN(len(text))
			damaged := append([]byte("["), text[from:min(len(text), from+40)]...)
			for range rng.IntN(4) {
				damaged[rng.IntN(len(damaged))] = other[rng.IntN(len(other))]
			}
			compareScanners(t, append(damaged, strings.Repeat("]", rng.IntN(2))...))
			compareScanners(t, append([]byte{'['}, randomJSON(rng, other)...))
		}
	}
}

// randomJSON is nearly a document.
func randomJSON(rng *rand.Rand, other string) (text []byte) {
	pieces := []string{`"a"`, `"\u00e9"`, "-0.5e+1", "12", "true", "null", "{", "}", "[", "]", ":", ",", " "}
	for range rng.IntN(8) {
		text = append(text, pieces[rng.IntN(len(pieces))]...)
		if rng.IntN(8) == 0 {
			text = append(text, other[rng.IntN(len(other))])
		}
	}
	return append(text, ']')
}
