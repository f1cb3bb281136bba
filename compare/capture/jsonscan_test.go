package capture

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/moebalance/moebalance/testdata/require"
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

// compareScanners holds the scanner against jsontext, with the document whole and byte by byte, which says the same:
// but any word passes for a number, and white space stands in texts.
func compareScanners(t *testing.T, text []byte) {
	t.Helper()
	if start := bytes.TrimLeft(text, " \t\r\n"); len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return // taken for no trace
	}
	lenient := textOrWord.ReplaceAllStringFunc(string(text), func(part string) string {
		if part[0] != '"' {
			return "0"
		}
		return strings.NewReplacer("\t", " ", "\n", " ", "\r", " ").Replace(part)
	})
	valid := jsontext.Value(lenient).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	want, _ := scanned(bytes.NewReader(text))
	for _, in := range []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text)),
		iotest.DataErrReader(bytes.NewReader(text))} {
		if have, err := scanned(in); (err == nil) != valid || valid && have != want {
			t.Fatalf("%.200q: valid is %v, have %s, error %v", text, valid, have, err)
		}
	}
}

var textOrWord = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|[-+.0-9A-Za-z]+`)

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

// What profilers write is read alike, whole and cut; so are texts with escapes.
func TestScannerOnTraces(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/torch/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		text := require.Value(os.ReadFile(path))
		compareScanners(t, text)
		for n := range min(len(text), 600) {
			compareScanners(t, text[:n])
		}
	}
	have, err := scanned(strings.NewReader(`{"a\u00e9\"": [-0.5e+1, "\ud83d\ude00\/", {"b": null}, 12.5]}`))
	if want := `{"aé\"":["-0.5e+1","😀/",{"b":"null",}"12.5",]}`; err != nil || have != want {
		t.Errorf("have %s, %v, want %s", have, err, want)
	}
}
