package counts

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// arrayFiles are one array as numpy.save, torch.save and a print write it.
func arrayFiles(t *testing.T, shape []int, values []int64) map[string][]byte {
	t.Helper()
	var npy bytes.Buffer
	dims := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
	header := fmt.Sprintf("{'descr': '<i8', 'fortran_order': False, 'shape': (%s,), }\n", dims)
	npy.WriteString("\x93NUMPY\x01\x00")
	binary.Write(&npy, binary.LittleEndian, uint16(len(header)))
	npy.WriteString(header)
	binary.Write(&npy, binary.LittleEndian, values)
	var raw bytes.Buffer
	binary.Write(&raw, binary.LittleEndian, values)
	number := func(n int) string { return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	pickle, strides, step := "\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x08tQK\x00(", "", 1
	nested := any(values)
	for i := len(shape) - 1; i >= 0; i-- {
		strides, step = number(step)+strides, step*shape[i]
		if i > 0 {
			nested = chunks(nested, shape[i])
		}
	}
	for _, n := range shape {
		pickle += number(n)
	}
	text, err := json.Marshal(nested)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"npy": npy.Bytes(), "json": text,
		"pt": archive(t, map[string]string{"x/data.pkl": pickle + "t(" + strides + "ttR.", "x/data/0": raw.String()}),
	}
}

func chunks(list any, size int) any {
	switch list := list.(type) {
	case []int64:
		return slices.Collect(slices.Chunk(list, size))
	case [][]int64:
		return slices.Collect(slices.Chunk(list, size))
	}
	return list
}

func arrayOf(t *testing.T, content []byte, text string) (*Record, error) {
	t.Helper()
	axes, err := ParseAxes(text)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDocument("x", content)
	if err != nil {
		return nil, err
	}
	d.axes = axes
	return d.record()
}

// Two steps of two layers of four experts: what the numbers are is asked for, never guessed,
// and the same in every container.
func TestAxesOfThreeDimensions(t *testing.T) {
	values := []int64{8, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 8, 4, 3, 2, 1}
	for name, content := range arrayFiles(t, []int{2, 2, 4}, values) {
		if r, err := arrayOf(t, content, ""); err == nil ||
			!strings.Contains(err.Error(), "--axes steps,layers,experts") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		for axes, want := range map[string][]step{
			"steps,layers,experts": {{0, 0, values[:4], nil}, {0, 1, values[4:8], nil}, {1, 0, values[8:12], nil},
				{1, 1, values[12:], nil}},
			"layers,steps,experts": {{0, 0, values[:4], nil}, {0, 1, values[8:12], nil}, {1, 0, values[4:8], nil},
				{1, 1, values[12:], nil}},
			"layers,ranks,experts": {{0, 0, values[:8], nil}, {0, 1, values[8:], nil}},
		} {
			r, err := arrayOf(t, content, axes)
			if err != nil {
				t.Errorf("%s, %s: %v", name, axes, err)
				continue
			}
			checkSteps(t, r, want)
			if r.Window == strings.Contains(axes, "steps") || (r.Ranks == 2) != strings.Contains(axes, "ranks") {
				t.Errorf("%s, %s: %+v", name, axes, r)
			}
		}
		if r, err := arrayOf(t, content, "layers,experts"); err == nil ||
			!strings.Contains(err.Error(), "want 2 dimensions") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// What tokens chose is no count of theirs: 40 tokens of top-2 of 8 experts, by hand expert t%8
// and t%8+1 mod 8, ten times each.
func TestIDsAreNoCounts(t *testing.T) {
	var ids []int64
	for token := range int64(40) {
		ids = append(ids, token%8, (token+1)%8)
	}
	want := []step{{0, 0, []int64{10, 10, 10, 10, 10, 10, 10, 10}, nil}}
	for name, content := range arrayFiles(t, []int{40, 2}, ids) {
		r, err := arrayOf(t, content, "tokens,topk")
		if err != nil || r.TopK != 2 || r.Experts != 8 {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		checkSteps(t, r, want)
	}
	for name, content := range arrayFiles(t, []int{40, 1, 2}, ids) {
		if r, err := arrayOf(t, content, ""); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
		r, err := arrayOf(t, content, "tokens,layers,topk")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkSteps(t, r, want)
	}
}

func TestAxesRefused(t *testing.T) {
	for _, text := range []string{"steps,layers", "experts,experts", "tokens,experts", "x,experts", "layers,topk,ranks",
		","} {
		if axes, err := ParseAxes(text); err == nil {
			t.Errorf("%q: %v", text, axes)
		}
	}
	if axes, err := ParseAxes("Tokens, Layers,top-k"); err != nil ||
		!slices.Equal(axes, Axes{"tokens", "layers", "topk"}) {
		t.Errorf("%v, %v", axes, err)
	}
	if r, err := arrayOf(t, []byte("layer,expert,count\n0,0,1\n"), "layers,experts"); err == nil ||
		!strings.Contains(err.Error(), "leave it out") {
		t.Errorf("axes of a CSV: %+v, %v", r, err)
	}
}

// A deep list, a list of other depths and one of other lengths.
func TestNumbers(t *testing.T) {
	for text, shape := range map[string][]int64{"[]": {0}, "[[]]": {1, 0}, "[[1, 2.0],\n[3,4e0]]": {2, 2}, "[-1]": {1},
		"[[[[1]]]]": {1, 1, 1, 1}} {
		if a, err := numbers([]byte(text)); err != nil || !slices.Equal(a.Shape, shape) {
			t.Errorf("%s: %v, %v", text, a, err)
		}
	}
	for _, text := range []string{"[[[[[1]]]]]", "[1,[2]]", "[[1],2]", "[[1],[2,3]]", "[[[]],[[1]]]", "[true]", `["1"]`,
		"[[1],[]]", "[[],[1]]", "7", `{"a":[1]}`, "[[[]],[1]]"} {
		if a, err := numbers([]byte(text)); err == nil {
			t.Errorf("%s: %v", text, a)
		}
	}
}
