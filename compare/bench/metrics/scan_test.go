package metrics

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// scan reads an object: path → value.
func scan(text string) (map[string]any, error) {
	s := scanner{doc: &document{line: 1}, text: text}
	s.next()
	s.value("")
	values := map[string]any{}
	for path, v := range s.doc.values {
		if values[path] = v.is; v.other != nil {
			values["twice"] = path
		}
	}
	delete(values, "")
	return values, s.err
}

// flat turns what encoding/json made of a value into paths and values.
func flat(v any, path string, into map[string]any) {
	put := func(key string, item any) { flat(item, strings.TrimPrefix(path+"/"+key, "/"), into) }
	switch x := v.(type) {
	case map[string]any:
		for key, item := range x {
			put(key, item)
		}
		v = object(len(x))
	case []any:
		for i, item := range x {
			put(strconv.Itoa(i), item)
		}
		v = list(len(x))
	}
	into[path] = v
}

func TestScanReadsPythonDicts(t *testing.T) {
	got, err := scan(`{'a': None, 'b': True, "c's": False, 'd': -1.5e-3, 'e': [1, 2,], 'f': 'it\'s \u00e9\n',
		'g': {'h': [],}, 'i': inf, 'j': nan,}`)
	want := map[string]any{"a": nil, "b": true, "c's": false, "d": -1.5e-3, "e": list(2), "e/0": 1.0, "e/1": 2.0,
		"f": "it's é\n", "g": object(1), "g/h": list(0), "i": math.Inf(1), "j": math.NaN()}
	if !maps.EqualFunc(got, want, equal) || err != nil {
		t.Errorf("have %v, want %v, error %v", got, want, err)
	}
}

func TestScanRefuses(t *testing.T) {
	for _, bad := range []string{
		`{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a" 1}`, `{a: 1}`, `{"a": 1 "b": 2}`, `{"a": }`, `{"a": 1]`,
		`{"a": [1}`, `{"a": 0x10}`, `{"a": 1_000}`, `{"a": --1}`, `{"a": nothing}`, `{"a": "\u12g4"}`, `{"a": "\u12`,
		`{"a": "x`, `{"a": "\`, "{\"a\": \"line\nend\"}",
		strings.Repeat(`{"a": `, 65) + "1" + strings.Repeat("}", 65),
	} {
		if got, err := scan(bad); err == nil {
			t.Errorf("%.60q scanned to %v", bad, got)
		}
	}
	for _, good := range []string{"{\n \"b\": 1}", "{\"a\": 1,\n \"b\": 1}",
		strings.Repeat(`{"b": `, 64) + "1" + strings.Repeat("}", 64)} {
		if got, err := scan(good); err != nil || got["b"] != 1.0 && got["b"] != object(1) { // grammar, not lines
			t.Errorf("%q: %v, %v", good, got, err)
		}
	}
}

// Values of one path are compared by content.
func TestPathsGivenTwice(t *testing.T) {
	for in, twice := range map[string]any{
		`{"a": 1, "a": 1.0}`: nil, `{"a": 0.1, "a": 0.10000000000000002}`: nil,
		`{"a": {"b": [1, NaN], "c": null}, "a": {"b": [1, NaN], "c": null}}`: nil,
		`{"a": 1, "a": 2}`:        "a",
		`{"a": 1, "a": NaN}`:      "a",
		`{"a": NaN, "a": 1}`:      "a",
		`{"a": [1], "a": [1, 2]}`: "a",
	} {
		if got, err := scan(in); err != nil || got["twice"] != twice {
			t.Errorf("%s: %v, error %v, want %v", in, got, err, twice)
		}
	}
}

// Whatever encoding/json accepts as an object is scanned to the same values. Not compared are keys that are there
// twice, in any spelling, and strings that are not UTF-8.
func FuzzScan(f *testing.F) {
	for _, text := range fixtures {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"a": [1, -0.5e7, "x\u00e9\n\"", null, true, {"b": {}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := scan(string(data))
		var decoded map[string]any
		if json.Unmarshal(data, &decoded) != nil || decoded == nil || !utf8.Valid(data) {
			return
		}
		if err != nil && !strings.Contains(err.Error(), "levels") {
			t.Errorf("%q: %v", data, err)
		}
		want := map[string]any{}
		flat(decoded, "", want)
		delete(want, "")
		if err == nil && got["twice"] == nil && len(got) == bytes.Count(data, []byte(":")) && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: have %v, want %v", data, got, want)
		}
	})
}
