package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moebalance/moebalance/router/input"
)

// raw is a file with the given header text and data, the length filled in.
func raw(header, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func read(b []byte) (*File, error) {
	return Read("x.safetensors", bytes.NewReader(b), int64(len(b)))
}

// sample holds two tensors and metadata, written by hand.
func sample() []byte {
	return raw(`{"__metadata__":{"format":"pt"},"a":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}}  `,
		"\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\xff\xff\xff\xff\x07\x08\x09")
}

func TestReadHandMadeFile(t *testing.T) {
	f, err := read(sample())
	if err != nil {
		t.Fatal(err)
	}
	if got := f.header.metadata; !reflect.DeepEqual(got, map[string]string{"format": "pt"}) {
		t.Errorf("metadata %v", got)
	}
	if a, err := int64s(f, "a"); err != nil || !slices.Equal(a, []int64{1, 2, 3, -1}) {
		t.Errorf("a = %v, %v", a, err)
	}
	if b, err := int64s(f, "b"); err != nil || !slices.Equal(b, []int64{7, 8, 9}) {
		t.Errorf("b = %v, %v", b, err)
	}
	if tensor := f.Tensors()[0]; tensor.String() != `"a" I32 [2×2]` {
		t.Errorf("tensor %v", tensor)
	}
}

func TestEveryCutIsTruncated(t *testing.T) {
	whole := sample()
	for n := range whole {
		if _, err := read(whole[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("cut at byte %d of %d: %v", n, len(whole), err)
		}
	}
	_, err := read(append(whole, 0))
	if format := new(input.Error); !errors.As(err, &format) || format.Position != fmt.Sprintf("byte %d", len(whole)) {
		t.Fatalf("one byte more: %v", err)
	}
}

// int64s reads a tensor of integers.
func int64s(f *File, name string) ([]int64, error) {
	tensors := f.Tensors()
	t := tensors[slices.IndexFunc(tensors, func(t Tensor) bool { return t.Name == name })]
	raw, err := f.Bytes(t)
	if err != nil {
		return nil, err
	}
	values := make([]int64, len(raw)/int(t.DType.Size()))
	return values, DecodeIntegers(values, raw, t.DType)
}

// A file that shrinks after its size was taken must not pass for a whole one.
func TestShrinkingFile(t *testing.T) {
	whole := sample()
	f, err := Read("x", bytes.NewReader(whole[:len(whole)-1]), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Bytes(f.Tensors()[1]); !errors.Is(err, ErrTruncated) {
		t.Fatalf("got %v", err)
	}
}

func TestHostileHeaders(t *testing.T) {
	const ok = `"dtype":"U8","shape":[4]`
	tensor := func(fields string) []byte { return raw(`{"a":{`+fields+`}}`, "0123") }
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"huge header":      {append([]byte{0, 0, 0, 0, 1, 0, 0, 0}, make([]byte, 8)...), "at most 100000000"},
		"empty header":     {raw("", ""), "have its end"},
		"array header":     {raw(`[]`, ""), "want tensors with"},
		"cut JSON":         {raw(`{"a":`, ""), "valid JSON"},
		"text after JSON":  {raw(`{} {}`, ""), "after top-level value"},
		"not UTF-8":        {raw("{\"\xff\":{"+ok+`,"data_offsets":[0,4]}}`, "0123"), "UTF-8"},
		"no dtype":         {tensor(`"shape":[4],"data_offsets":[0,4]`), "supported dtype"},
		"unknown dtype":    {tensor(`"dtype":"F4","shape":[4],"data_offsets":[0,4]`), `tensor "a": want a supported dtype, have "F4"`},
		"no shape":         {tensor(`"dtype":"U8","data_offsets":[0,4]`), "want a shape"},
		"one offset":       {tensor(ok + `,"data_offsets":[4]`), "data_offsets"},
		"backward offsets": {tensor(ok + `,"data_offsets":[4,0]`), "begin ≤ end"},
		"negative offset":  {tensor(ok + `,"data_offsets":[-4,0]`), "want tensors with"},
		"shape too small":  {tensor(`"dtype":"U8","shape":[3],"data_offsets":[0,4]`), "the 3 bytes"},
		"shape overflows":  {tensor(`"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]`), "2^63 bytes"},
		"beyond 63 bits":   {tensor(`"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]`), "2^63 bytes"},
		"offsets of 64 bits": {tensor(`"dtype":"U8","shape":[4],"data_offsets":[18446744073709551611,18446744073709551615]`),
			"begin ≤ end"},
		"data past the end": {raw(`{"a":{`+ok+`,"data_offsets":[0,4]}}`, "012"), "want 4 tensor bytes"},
		"hole":              {raw(`{"a":{`+ok+`,"data_offsets":[1,5]}}`, "01234"), "without bytes between"},
		"overlap":           {raw(`{"a":{`+ok+`,"data_offsets":[0,4]},"b":{`+ok+`,"data_offsets":[3,7]}}`, "0123456"), "without overlap"},
		"trailing bytes":    {raw(`{"a":{`+ok+`,"data_offsets":[0,4]}}`, "01234"), "1 more byte"},
		"duplicate tensor":  {raw(`{"a":{`+ok+`,"data_offsets":[0,4]},"a":{`+ok+`,"data_offsets":[4,8]}}`, "01234567"), "duplicate"},
		"metadata number":   {raw(`{"__metadata__":{"a":1}}`, ""), "metadata of texts"},
		"deep field":        {raw(`{"a":{"x":`+strings.Repeat("[", 20000)+`}}`, ""), "max depth"},
	} {
		_, err := read(c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			!errors.As(err, new(*input.Error)) {
			t.Errorf("%s: got %v, want something about %q", name, err, c.want)
		}
	}
}

func TestUnusualButValid(t *testing.T) {
	for name, file := range map[string][]byte{
		"no tensors": raw(`{}`, ""),
		"scalar":     raw(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, "0123"),
		"zero elements": raw(
			`{"a":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, "0"),
		"unknown field": raw(`{"a":{"dtype":"U8","note":{"x":[1]},"shape":[1],"data_offsets":[0,1]}}`, "0"),
	} {
		f, err := read(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, tensor := range f.Tensors() {
			if _, err := f.Bytes(tensor); err != nil {
				t.Errorf("%s: tensor %d: %v", name, i, err)
			}
		}
	}
}

func TestIntegerKinds(t *testing.T) {
	le := binary.LittleEndian
	for _, c := range []struct {
		dtype DType
		bytes []byte
		want  []int64 // nil: refused
	}{
		{Bool, []byte{0, 1}, []int64{0, 1}}, {I8, []byte{0x80, 0x7f}, []int64{-128, 127}}, {U8, []byte{0xff}, []int64{255}},
		{U16, []byte{0xff, 0xff}, []int64{65535}}, {I16, []byte{0xff, 0xff, 2, 1}, []int64{-1, 258}},
		{U32, []byte{0xff, 0xff, 0xff, 0xff}, []int64{1<<32 - 1}}, {I32, []byte{0xfe, 0xff, 0xff, 0xff}, []int64{-2}},
		{I64, le.AppendUint64(nil, 1<<63), []int64{math.MinInt64}}, {U64, le.AppendUint64(nil, 1<<63-1), []int64{math.MaxInt64}},
		{U64, le.AppendUint64(nil, 1<<63), nil}, {F16, []byte{0x00, 0x3c}, nil}, {BF16, []byte{0x80, 0x3f}, nil},
		{F32, []byte{0, 0, 0, 0}, nil}, {I16, []byte{1}, nil},
	} {
		got := make([]int64, max(1, len(c.bytes)/int(c.dtype.Size())))
		if err := DecodeIntegers(got, c.bytes, c.dtype); (err == nil) != (c.want != nil) || err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%s %x: %v, %v, want %v", c.dtype, c.bytes, got, err, c.want)
		}
	}
}

// A folder, a missing and an empty file are told, and a pipe that nobody writes to holds nothing up.
func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	empty, pipe := filepath.Join(dir, "empty"), filepath.Join(dir, "pipe.safetensors")
	if err := errors.Join(os.WriteFile(empty, nil, 0o600), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{dir: "a folder", filepath.Join(dir, "none"): "no such file",
		empty: ErrTruncated.Error(), pipe: "want a regular file, have a pipe"} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample())
	f.Add(raw(`{}`, ""))
	f.Add(raw(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, "0123"))
	if b, err := os.ReadFile("../../testdata/gptoss-ep4-ranks/counts-normal/rank0.safetensors"); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := read(b)
		if err != nil {
			return
		}
		// What is accepted can be written and read back, byte for byte.
		var data []byte
		for _, tensor := range file.Tensors() {
			content, err := file.Bytes(tensor)
			if err != nil {
				t.Fatalf("accepted, but %v", err)
			}
			data = append(data, content...)
		}
		if len(data) > len(b) {
			t.Fatalf("%d tensor bytes in a file of %d", len(data), len(b))
		}
		head, err := Header(file.header.metadata, file.Tensors())
		if err != nil {
			return // narrow types first, which is not written
		}
		back, err := read(append(head, data...))
		if err != nil || !reflect.DeepEqual(back.Tensors(), file.Tensors()) ||
			len(back.header.metadata)+len(file.header.metadata) > 0 && !reflect.DeepEqual(back.header.metadata, file.header.metadata) {
			t.Fatalf("%v, %v, want %v", back, err, file)
		}
	})
}
