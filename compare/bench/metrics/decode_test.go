package metrics

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func decode(text string) (*document, error) {
	doc := &document{}
	return doc, decodeObject(&source{from: strings.NewReader(text)}, doc)
}

// flat turns what encoding/json made of an object into paths and values.
func flat(of map[string]any, path string, into map[string]any) map[string]any {
	var value func(v any, path string) any
	value = func(v any, path string) any {
		switch x := v.(type) {
		case map[string]any:
			flat(x, path+"/", into)
			return object{}
		case []any:
			l := &list{}
			for i, item := range x {
				at := path
				switch item.(type) {
				case map[string]any, []any:
					at += "/" + strconv.Itoa(i)
				}
				v := value(item, at)
				if _, nested := v.(*list); nested {
					into[at] = v
				}
				l.items = append(l.items, v)
			}
			return l
		}
		return v
	}
	for key, v := range of {
		into[path+key] = value(v, path+key)
	}
	return into
}

func TestDecodeReadsPythonDicts(t *testing.T) {
	got, err := decode(`{'a': None, 'b': True, "c's": False, 'd': -1.5e-3, 'e': (1, 2,), 'f': 'it\'s \u00e9\n', 'g': {'h': [],}, 'i': inf, 'j': nan,}`)
	if err != nil {
		t.Fatal(err)
	}
	m := got.values
	if j := m["j"].(float64); !math.IsNaN(j) {
		t.Errorf("nan is %v", j)
	}
	delete(m, "j")
	want := map[string]any{
		"a": nil, "b": true, "c's": false, "d": -1.5e-3, "e": &list{items: []any{1.0, 2.0}}, "f": "it's é\n",
		"g": object{}, "g/h": &list{}, "i": math.Inf(1),
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
		"{\"a\": \"line\nend\"}",
		`{"a": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		`{"a": ` + strings.Repeat("9", 1000) + `}`,
	} {
		if got, err := decode(bad); err == nil {
			t.Errorf("%.60q decoded to %v", bad, got.values)
		}
	}
	for _, good := range []string{"{\n \"a\": 1,\n \"b\": 2\n}", "{\"a\": 1,\n \"b\": 2}"} { // grammar, not lines
		if got, err := decode(good); err != nil || got.values["b"] != 2.0 {
			t.Errorf("%q: %v, %v", good, got.values, err)
		}
	}
}

// Values of one path are compared by content, whatever their place in memory.
func TestPathsGivenTwice(t *testing.T) {
	for in, clash := range map[string]string{
		`{"a": 1, "a": 1.0}`: "",
		`{"a": {"b": [1, NaN], "c": null}, "a": {"b": [1, NaN], "c": null}}`: "",
		`{"a": 1, "a": 2}`:               "a",
		`{"a": {"b": 1}, "a": {"b": 2}}`: "a/b",
		`{"a": [1], "a": [1, 2]}`:        "a",
		`{"a": 1, "a": "1"}`:             "a",
		`{"a": {"b": 1}, "a": 1}`:        "a",
	} {
		doc, err := decode(in)
		if err != nil || len(doc.clash) > 0 != (clash != "") || clash != "" && !doc.clash[clash] {
			t.Errorf("%s: clash of %v, error %v, want %q", in, doc.clash, err, clash)
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
		got, err := decode(string(data))
		trimmed := bytes.TrimRight(data, " \t\r\n")
		var want map[string]any
		if !bytes.HasPrefix(data, []byte("{")) || json.Unmarshal(trimmed, &want) != nil ||
			bytes.ContainsAny(trimmed, "/\n\\") || len(data) > 1<<12 || bytes.Count(data, []byte("[")) > 20 {
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
			!reflect.DeepEqual(got.values, flat(want, "", map[string]any{})) {
			t.Errorf("%q: have %v, want %v", data, got.values, want)
		}
	})
}
