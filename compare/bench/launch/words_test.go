package launch

import (
	"reflect"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		``:                           nil,
		`  a  b	c `:                  {"a", "b", "c"},
		`python 'a b' "c d"`:         {"python", "a b", "c d"},
		`a'b'"c"d`:                   {"abcd"},
		`'' ""`:                      {"", ""},
		`a\ b \'`:                    {"a b", "'"},
		`"a\"b\\c\n"`:                {`a"b\c\n`},
		`'a\b'`:                      {`a\b`},
		`--export=ALL,A=1 $HOME *.x`: {"--export=ALL,A=1", "$HOME", "*.x"},
	} {
		if got, err := Words(line); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Words(%q) = %q, %v; want %q", line, got, err, want)
		}
	}
	for _, line := range []string{`'a`, `"a`, `a\`} {
		if _, err := Words(line); err == nil {
			t.Errorf("Words(%q) passed", line)
		}
	}
}

// What Quote writes, Words reads back.
func FuzzQuoteWords(f *testing.F) {
	f.Add("a b\x00it's\x00\"x\\\x00")
	f.Add("--opt=1\x00$(rm)\x00\n")
	f.Fuzz(func(t *testing.T, joined string) {
		words := strings.Split(strings.ToValidUTF8(joined, "?"), "\x00")
		if got, err := Words(Quote(words)); err != nil || !reflect.DeepEqual(got, words) {
			t.Fatalf("%q became %q, %v", words, got, err)
		}
	})
}
