package safetensors

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestHeaderIsAlignedAndExact(t *testing.T) {
	for length := range 9 { // metadata of every length modulo 8
		head, err := Header(map[string]string{"k": strings.Repeat("x", length)}, []Tensor{
			{Name: "a", DType: I32, Shape: []int64{2, 2}},
			{Name: "b", DType: BF16, Shape: []int64{3}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(head)%8 != 0 || binary.LittleEndian.Uint64(head) != uint64(len(head)-8) {
			t.Errorf("header of %d bytes says %d", len(head), binary.LittleEndian.Uint64(head))
		}
		f, err := read(append(head, make([]byte, 16+6)...))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Tensors(); len(got) != 2 || got[0].Begin != 0 || got[0].End != 16 || got[1].End != 22 {
			t.Errorf("laid out as %v", got)
		}
	}
	// Written out by hand from the format: the whole text of a small header.
	head, err := Header(map[string]string{"b": "2", "a": "1"}, []Tensor{{Name: "t", DType: U8, Shape: []int64{}}})
	want := `{"__metadata__":{"a":"1","b":"2"},"t":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`
	if err != nil || strings.TrimRight(string(head[8:]), " ") != want {
		t.Errorf("got %q, %v", head[8:], err)
	}
}

func TestHeaderRefuses(t *testing.T) {
	for want, tensors := range map[string][]Tensor{
		"taken":             {{Name: "a", DType: U8}, {Name: "a", DType: U8}},
		"name is taken":     {{Name: "__metadata__", DType: U8}},
		"impossible":        {{Name: "a", DType: U8, Shape: []int64{1<<63 - 1}}, {Name: "b", DType: U8, Shape: []int64{1}}},
		"wider types first": {{Name: "a", DType: BF16, Shape: []int64{3}}, {Name: "b", DType: I32, Shape: []int64{1}}},
	} {
		if _, err := Header(nil, tensors); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want something about %q", err, want)
		}
	}
	for name, data := range map[string]map[string][]byte{"short": {"a": {1}}, "missing": {},
		"extra": {"a": {1, 2}, "b": {1}}} {
		var out bytes.Buffer
		if err := Write(&out, nil, []Tensor{{Name: "a", DType: U8, Shape: []int64{2}}}, data); err == nil || out.Len() > 0 {
			t.Errorf("%s: %v, %d bytes written", name, err, out.Len())
		}
	}
}

func TestReadTensorFindsShards(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bias := func(name string, values ...byte) []byte {
		var b bytes.Buffer
		if err := Write(&b, nil, []Tensor{{Name: name, DType: BF16, Shape: []int64{int64(len(values)) / 2}}},
			map[string][]byte{name: values}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	one := put("model-00001-of-00002.safetensors", bias("layers.3.bias", 0x80, 0x3f, 0x00, 0xc0))
	put("model-00002-of-00002.safetensors", bias("layers.4.bias", 0x00, 0x40))
	index := put(indexName, []byte(`{"metadata":{"total_size":6},"weight_map":{
		"layers.3.bias":"model-00001-of-00002.safetensors","layers.4.bias":"model-00002-of-00002.safetensors",
		"gone":"model-00003-of-00002.safetensors","lies":"model-00001-of-00002.safetensors","out":"../secret.safetensors","root":"/secret.safetensors"}}`))
	for _, c := range []struct {
		path, name string
		want       []float32
	}{
		{one, "layers.3.bias", []float32{1, -2}},
		{index, "layers.3.bias", []float32{1, -2}},
		{index, "layers.4.bias", []float32{2}},
		{dir, "layers.4.bias", []float32{2}},
	} {
		got, err := ReadTensor(c.path, c.name)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s %s: got %v, %v", filepath.Base(c.path), c.name, got, err)
		}
	}
	for name, c := range map[string]struct{ path, tensor, want string }{
		"no such tensor": {index, "layers.5.bias", "no such tensor"},
		"missing shard":  {index, "gone", "no such file"},
		"wrong shard":    {index, "lies", "no such tensor"},
		"shard above":    {index, "out", "beside the index"},
		"absolute shard": {index, "root", "beside the index"},
		"no weight map":  {put("empty.json", []byte("{\n \"a\": 1}")), "x", "weight_map"},
		"cut index":      {put("cut.json", []byte(`{"weight_map":{"x":`)), "x", "unexpected end"},
		"empty folder":   {t.TempDir(), "x", "name the file"},
	} {
		if _, err := ReadTensor(c.path, c.tensor); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want something about %q", name, err, c.want)
		}
	}
}
