package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/testdata/require"
)

// raw is a file with the given header text and data, the length filled in.
func raw(header, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func read(b []byte) ([]Tensor, error) { return Parse("x.safetensors", b) }

// sample holds two tensors and metadata, written by hand.
func sample() []byte {
	return raw(`{"__metadata__":{"format":"pt"},"a":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}}  `,
		"\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\xff\xff\xff\xff\x07\x08\x09")
}

func TestReadHandMadeFile(t *testing.T) {
	tensors := require.Value(read(sample()))
	for i, want := range [][]int64{{1, 2, 3, -1}, {7, 8, 9}} {
		got := make([]int64, len(want))
		if err := DecodeIntegers(got, tensors[i].Data, tensors[i].DType); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s = %v, %v", tensors[i].Name, got, err)
		}
	}
}

func TestEveryCutIsTruncated(t *testing.T) {
	whole := sample()
	for n := range whole {
		if _, err := read(whole[:n]); err == nil || !strings.HasSuffix(err.Error(), "have the end of the file") {
			t.Fatalf("cut at byte %d of %d: %v", n, len(whole), err)
		}
	}
	_, err := read(append(whole, 0))
	if format := new(input.Error); !errors.As(err, &format) || format.Position != fmt.Sprintf("byte %d", len(whole)) {
		t.Fatalf("one byte more: %v", err)
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
		"empty header":     {raw("", ""), "valid JSON"},
		"array header":     {raw(`[]`, ""), "valid JSON"},
		"cut JSON":         {raw(`{"a":`, ""), "valid JSON"},
		"text after JSON":  {raw(`{} {}`, ""), "after top-level value"},
		"not UTF-8":        {raw("{\"\xff\":{"+ok+`,"data_offsets":[0,4]}}`, "0123"), "UTF-8"},
		"no dtype":         {tensor(`"shape":[4],"data_offsets":[0,4]`), "supported dtype"},
		"unknown dtype":    {tensor(`"dtype":"F4","shape":[4],"data_offsets":[0,4]`), `tensor "a": want a supported dtype, have "F4"`},
		"no shape":         {tensor(`"dtype":"U8","data_offsets":[0,4]`), "want a shape"},
		"one offset":       {tensor(ok + `,"data_offsets":[4]`), "data_offsets"},
		"backward offsets": {tensor(ok + `,"data_offsets":[4,0]`), "begin ≤ end"},
		"negative offset":  {tensor(ok + `,"data_offsets":[-4,0]`), "want dtype, shape"},
		"shape too small":  {tensor(`"dtype":"U8","shape":[3],"data_offsets":[0,4]`), "the 3 bytes"},
		"shape overflows":  {tensor(`"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]`), "bytes of shape"},
		"beyond 63 bits":   {tensor(`"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]`), "want dtype, shape"},
		"offsets of 64 bits": {tensor(`"dtype":"U8","shape":[4],"data_offsets":[18446744073709551611,18446744073709551615]`),
			"without overlap"},
		"data past the end": {raw(`{"a":{`+ok+`,"data_offsets":[0,4]}}`, "012"), "want 4 tensor bytes"},
		"hole":              {raw(`{"a":{`+ok+`,"data_offsets":[1,5]}}`, "01234"), "without bytes between"},
		"overlap":           {raw(`{"a":{`+ok+`,"data_offsets":[0,4]},"b":{`+ok+`,"data_offsets":[3,7]}}`, "0123456"), "without overlap"},
		"trailing bytes":    {raw(`{"a":{`+ok+`,"data_offsets":[0,4]}}`, "01234"), "1 more byte"},
		"duplicate tensor":  {raw(`{"a":{`+ok+`,"data_offsets":[0,4]},"a":{`+ok+`,"data_offsets":[4,8]}}`, "01234567"), "duplicate"},
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
		if _, err := read(file); err != nil {
			t.Errorf("%s: %v", name, err)
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

func FuzzRead(f *testing.F) {
	f.Add(sample())
	f.Add(raw(`{}`, ""))
	f.Add(raw(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, "0123"))
	if b, err := os.ReadFile("../../testdata/gptoss-ep4-ranks/counts-normal/rank0.safetensors"); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, err := read(b)
		if err != nil {
			return
		}
		// What is accepted can be written and read back, byte for byte.
		var data []byte
		for _, tensor := range tensors {
			data = append(data, tensor.Data...)
		}
		if back, err := read(append(Header(nil, tensors), data...)); err != nil || !reflect.DeepEqual(back, tensors) {
			t.Fatalf("%v, %v, want %v", back, err, tensors)
		}
	})
}
