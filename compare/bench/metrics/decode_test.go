package metrics

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

func decode(text string) (*object, error) {
	return decodeObject(newSource(strings.NewReader(text), false).in)
}

// plain turns decoded values into what encoding/json makes of the same text.
func plain(v any) any {
	switch x := v.(type) {
	case *object:
		m := map[string]any{}
		for i, k := range x.keys {
			m[k] = plain(x.values[i])
		}
		return m
	case *list:
		l := make([]any, 0, len(x.items))
		for _, item := range x.items {
			l = append(l, plain(item))
		}
		return l
	}
	return v
}

func TestDecodeReadsPythonDicts(t *testing.T) {
	got, err := decode(`{'a': None, 'b': True, "c's": False, 'd': -1.5e-3, 'e': (1, 2,), 'f': 'it\'s \x41\u00e9\n', 'g': {'h': [],}, 'i': inf, 'j': nan,}`)
	if err != nil {
		t.Fatal(err)
	}
	m := plain(got).(map[string]any)
	if j := m["j"].(float64); !math.IsNaN(j) {
		t.Errorf("nan is %v", j)
	}
	delete(m, "j")
	want := map[string]any{
		"a": nil, "b": true, "c's": false, "d": -1.5e-3, "e": []any{1.0, 2.0}, "f": "it's Aé\n",
		"g": map[string]any{"h": []any{}}, "i": math.Inf(1),
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("have %v, want %v", m, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, bad := range []string{
		`{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a" 1}`, `{a: 1}`, `{"a": 1 "b": 2}`, `{"a": }`, `{"a": 1]`,
		`{"a": [1}`,
		`{"a": 0x10}`, `{"a": 1_000}`, `{"a": --1}`, `{"a": nothing}`, `{"a": "\u12g4"}`, `{"a": "\u12`, `{"a": "x`,
		"{\"a\": \"line\nend\"}", "{\"a\": 1,\n{\"b\": 2}}", // a line that begins as a row does is one
		`{"a": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		`{"a": ` + strings.Repeat("9", 1000) + `}`,
	} {
		if got, err := decode(bad); err == nil {
			t.Errorf("%.60q decoded to %v", bad, plain(got))
		}
	}
	if _, err := decode("{\n \"a\": 1,\n \"b\": 2\n}"); err != nil {
		t.Errorf("a pretty-printed document: %v", err)
	}
}

func TestDuplicateKeys(t *testing.T) {
	same, err := decode(`{"a": 1, "a": 1.0}`)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok, err := same.get("a"); v != 1.0 || !ok || err != nil {
		t.Errorf("a key given twice with one value: %v, %v, %v", v, ok, err)
	}
	different, err := decode(`{"a": 1, "a": 2}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := different.get("a"); err == nil {
		t.Error("a key given twice with two values passed")
	}
}

// Nested objects are compared by content, whatever their place in memory.
func TestDuplicateKeysOfEqualObjects(t *testing.T) {
	for in, want := range map[string]bool{
		`{"a": {"b": [1, NaN], "c": null}, "a": {"b": [1, NaN], "c": null}}`: true,
		`{"a": [{"b": 1}], "a": [{"b": 1.0}]}`:                               true,
		`{"a": {"b": 1}, "a": {"b": 2}}`:                                     false,
		`{"a": {"b": 1}, "a": {"b": 1, "c": 1}}`:                             false,
		`{"a": [1], "a": [1, 2]}`:                                            false,
		`{"a": 1, "a": "1"}`:                                                 false,
	} {
		o, err := decode(in)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.get("a"); (err == nil) != want {
			t.Errorf("%s: error %v, want equal values: %v", in, err, want)
		}
	}
}

// Whatever encoding/json accepts as an object decodes to the same values, as
// long as it follows the rule about lines and the limits of the decoder.
func FuzzDecode(f *testing.F) {
	for name, b := range fixtureFiles(f) {
		if strings.Contains(name, ".json") {
			f.Add(b)
		}
	}
	f.Add([]byte(`{"a": [1, -0.5e7, "x\u00e9\n\"", null, true, {"b": {}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := newSource(bytes.NewReader(data), false).in
		got, err := decodeObject(in)
		if n := bytes.Count(data[:in.read], []byte("\n")); n != in.line-1 {
			t.Errorf("line %d after %q", in.line, data[:in.read])
		}
		trimmed := bytes.TrimRight(data, " \t\r\n")
		var want map[string]any
		if !bytes.HasPrefix(data, []byte("{")) || json.Unmarshal(trimmed, &want) != nil ||
			bytes.ContainsAny(trimmed, "\n\\") || len(data) > 1<<12 || bytes.Count(data, []byte("[")) > 20 {
			return
		}
		if err != nil {
			// Numbers longer than any real one, and nothing else.
			if !strings.Contains(err.Error(), "…") && !strings.Contains(err.Error(), "nested") {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		if text := bytes.ToValidUTF8(trimmed, nil); len(text) == len(trimmed) &&
			!reflect.DeepEqual(plain(got), any(want)) {
			t.Errorf("%q: have %v, want %v", data, plain(got), want)
		}
	})
}
