package safetensors

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

func TestHeaderIsAlignedAndExact(t *testing.T) {
	for length := range 9 { // metadata of every length modulo 8
		head := Header(map[string]string{"k": strings.Repeat("x", length)}, []Tensor{
			{Name: "a", DType: I32, Shape: []int64{2, 2}},
			{Name: "b", DType: BF16, Shape: []int64{3}},
		})
		if len(head)%8 != 0 || binary.LittleEndian.Uint64(head) != uint64(len(head)-8) {
			t.Errorf("header of %d bytes says %d", len(head), binary.LittleEndian.Uint64(head))
		}
		f := require.Value(read(append(head, make([]byte, 16+6)...)))
		if len(f) != 2 || len(f[0].Data) != 16 || len(f[1].Data) != 6 {
			t.Errorf("laid out as %v", f)
		}
	}
	// Written out by hand from the format: the whole text of a small header.
	head := Header(map[string]string{"b": "2", "a": "1"}, []Tensor{{Name: "t", DType: U8, Shape: []int64{}}})
	want := `{"__metadata__":{"a":"1","b":"2"},"t":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`
	if strings.TrimRight(string(head[8:]), " ") != want {
		t.Errorf("got %q", head[8:])
	}
}
