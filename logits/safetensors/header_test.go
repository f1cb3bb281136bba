package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// reference reads a header token by token through encoding/json.
type reference struct{ *json.Decoder }

func (r reference) object(once func(key string) bool, value func(key string) error) error {
	if t, err := r.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("no object: %v, %w", t, err)
	}
	seen := map[string]bool{}
	for r.More() {
		key, err := r.text()
		if err != nil || seen[key] && once(key) {
			return fmt.Errorf("key %q: %w", key, err)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	_, err := r.Token()
	return err
}

func (r reference) text() (string, error) {
	t, err := r.Token()
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("no string: %v, %w", t, err)
	}
	return s, err
}

func (r reference) integers() ([]int64, error) {
	if t, err := r.Token(); err != nil || t != json.Delim('[') {
		return nil, fmt.Errorf("no array: %v, %w", t, err)
	}
	list := []int64{}
	for r.More() {
		t, err := r.Token()
		if err != nil {
			return nil, err
		}
		digits, _ := t.(json.Number)
		n, err := strconv.ParseUint(string(digits), 10, 63)
		if err != nil {
			return nil, err
		}
		list = append(list, int64(n))
	}
	_, err := r.Token()
	return list, err
}

func (r reference) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	var offsets []int64
	err := r.object(func(key string) bool { return key == "dtype" || key == "shape" || key == "data_offsets" },
		func(key string) (err error) {
			switch key {
			case "dtype":
				var s string
				s, err = r.text()
				t.DType = DType(s)
			case "shape":
				t.Shape, err = r.integers()
			case "data_offsets":
				offsets, err = r.integers()
			default:
				var ignored any
				err = r.Decode(&ignored)
			}
			return err
		})
	if err == nil && len(offsets) != 2 {
		err = fmt.Errorf("offsets %v", offsets)
	}
	if err == nil {
		t.Begin, t.End = offsets[0], offsets[1]
	}
	return t, err
}

// referenceHeader returns the tensors and the metadata by name.
func referenceHeader(text []byte) (tensors map[string]Tensor, metadata map[string]string, err error) {
	r := reference{json.NewDecoder(bytes.NewReader(text))}
	r.UseNumber()
	tensors, metadata = map[string]Tensor{}, map[string]string{}
	every := func(string) bool { return true }
	err = r.object(every, func(key string) (err error) {
		if key == metadataKey {
			return r.object(every, func(key string) (err error) {
				metadata[key], err = r.text()
				return err
			})
		}
		tensors[key], err = r.tensor(key)
		return err
	})
	if _, end := r.Token(); err == nil && end != io.EOF {
		err = errors.New("text after the header")
	}
	return tensors, metadata, err
}

// What the parser accepts, encoding/json reads alike; what it refuses as JSON,
// encoding/json refuses too, unless the tensors are impossible, a name comes twice or a
// string is not UTF-8, which encoding/json mends.
func FuzzHeader(f *testing.F) {
	const a = `"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}`
	for _, text := range []string{
		`{}`, `{` + a + `}`, `{"__metadata__":{"a":"\u00e9\n","b":""},` + a + `}  `,
		` { "\"" : {"dtype" : "F32" , "shape":[ ] , "data_offsets":[ 0 , 4]} }`,
		`{"\ud800":` + a[4:] + `}`,
		`{"a":{"x":[1,{"y":null}],"z":1e5,"dtype":"U8","shape":[0,2],"data_offsets":[0,0],"w":"\/"}}`,
		`{` + a + `,}`, `{,` + a + `}`, `{` + a + ` ` + a + `}`,
		`{"a":{"dtype":"U8","shape":[04],"data_offsets":[0,4]}}`,
		`{"a":{"dtype":"U8","shape":[4,],"data_offsets":[0,4]}}`,
		`{"a":{"dtype":"U8","shape":[-0],"data_offsets":[0,0]}}`, `{"` + "\x01" + `":` + a[4:] + `}`, `{"a" "b"}`,
		`{a:1}`, `{"a":{"x":01}}`, `[`, `{"a`, `{"a\`, `nul`, "\ufeff{}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, _, err := parseHeader("x", text)
		tensors, metadata, wrong := referenceHeader(text)
		if err != nil {
			for _, own := range []string{"valid JSON", "only spaces", "want a string", "want an object",
				"whole numbers"} {
				if wrong == nil && utf8.Valid(text) && strings.Contains(err.Error(), own) &&
					!strings.Contains(err.Error(), "surrogate") {
					t.Fatalf("%q: refused (%v), which encoding/json reads", text, err)
				}
			}
			return
		}
		if wrong != nil || !utf8.Valid(text) {
			t.Fatalf("%q: accepted, but encoding/json: %v", text, wrong)
		}
		have := map[string]Tensor{}
		for _, tensor := range h.tensors {
			have[tensor.Name] = tensor
		}
		if !reflect.DeepEqual(have, tensors) || len(have) != len(h.tensors) ||
			!reflect.DeepEqual(h.metadata, metadata) {
			t.Fatalf("%q:\nhave %v %v\nwant %v %v", text, h.tensors, h.metadata, tensors, metadata)
		}
	})
}

// A rank's header in a folder of expert statistics: 58,000 tensors.
func BenchmarkHeader(b *testing.B) {
	var tensors []Tensor
	for i := range 1000 {
		for layer := range 58 {
			tensors = append(tensors, Tensor{Name: fmt.Sprintf("%d_%d", i, layer), DType: I64, Shape: []int64{256}})
		}
	}
	head, err := Header(nil, tensors)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(head)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := parseHeader("x", head[lengthBytes:]); err != nil {
			b.Fatal(err)
		}
	}
}
