package counts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

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
	return d.record(axes)
}

// Two steps of two layers of four experts: what the numbers are is asked for, never guessed. Other containers hold the
// same arrays: loads_c.npy, sglang-strided.pt.
func TestAxesOfThreeDimensions(t *testing.T) {
	values := []int64{8, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 8, 4, 3, 2, 1}
	content := []byte("[[[8, 0, 0, 0], [1, 2, 3, 4]], [[0, 0, 0, 8], [4, 3, 2, 1]]]")
	for axes, want := range map[string]string{"": "--axes steps,layers,experts", "layers,experts": "want 2 dimensions"} {
		if r, err := arrayOf(t, content, axes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", axes, r, err)
		}
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
			t.Errorf("%s: %v", axes, err)
			continue
		}
		checkSteps(t, r, want)
		if r.Window == strings.Contains(axes, "steps") || (r.Ranks == 2) != strings.Contains(axes, "ranks") {
			t.Errorf("%s: %+v", axes, r)
		}
	}
}

// What tokens chose is no count of theirs: 8 tokens of top-2 of 8 experts, t and t+1 mod 8, in a layer.
func TestIDsAreNoCounts(t *testing.T) {
	want := []step{{0, 0, []int64{2, 2, 2, 2, 2, 2, 2, 2}, nil}}
	for axes, brackets := range map[string]string{"tokens,topk": "[%d, %d]", "tokens,layers,topk": "[[%d, %d]]"} {
		var rows []string
		for token := range 8 {
			rows = append(rows, fmt.Sprintf(brackets, token, (token+1)%8))
		}
		r, err := arrayOf(t, []byte("["+strings.Join(rows, ", ")+"]"), axes)
		if err != nil || r.TopK != 2 || r.Experts != 8 {
			t.Fatalf("%s: %+v, %v", axes, r, err)
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
		if a, err := (value{json: []byte(text)}).array(); err != nil || !slices.Equal(a.Shape, shape) {
			t.Errorf("%s: %v, %v", text, a, err)
		}
	}
	for _, text := range []string{"[[[[[1]]]]]", "[1,[2]]", "[[1],2]", "[[1],[2,3]]", "[[[]],[[1]]]", "[true]", `["1"]`,
		"[[1],[]]", "[[],[1]]", "7", `{"a":[1]}`, "[[[]],[1]]"} {
		if a, err := (value{json: []byte(text)}).array(); err == nil {
			t.Errorf("%s: %v", text, a)
		}
	}
}
