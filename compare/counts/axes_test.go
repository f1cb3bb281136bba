package counts

import (
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

func withAxes(content []byte, text string) (*Record, error) {
	axes := require.Value(ParseAxes(text))
	var r *Record
	err := reading("x", func() { r = newDocument("x", content).record(axes) })
	return r, err
}

// Two steps of two layers of four experts: what the numbers are is asked for, never guessed. Other containers hold the
// same arrays: loads_c.npy, sglang-strided.pt. What tokens chose is no count of theirs.
func TestAxes(t *testing.T) {
	const content, ids = "[[[8, 0, 0, 0], [1, 2, 3, 4]], [[0, 0, 0, 8], [4, 3, 2, 1]]]", "[[0, 1], [1, 2]]"
	const csv, object = "layer,expert,count\n0,0,1\n", `{"logical_count": [[5, 7], [6, 8]]}`
	v := []int64{8, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 8, 4, 3, 2, 1}
	for _, c := range []struct {
		content, axes, refused string
		topK, ranks            int
		steps                  []step
	}{
		{content, "", "have [2, 2, 4]", 0, 0, nil}, {content, "layers,experts", "want 2 dimensions", 0, 0, nil},
		{strings.Replace("["+strings.Repeat("[3, 4], ", 257)+"]", ", ]", "]", 1), "", "have [257, 2]", 0, 0, nil},
		{"[[1, 2], [3, 1e30]]", "", "item [1, 1]", 0, 0, nil},
		{"[[1, 2], [3, 1e15]]", "", "layer 1: expert 1: want a count between", 0, 0, nil},
		{csv, "layers,experts", "", 0, 0, []step{{0, 0, []int64{1}, nil}}},
		{object, "layers,experts", "", 0, 0, []step{{0, 0, []int64{5, 7}, nil}, {0, 1, []int64{6, 8}, nil}}},
		{object, "experts,layers", "says experts,layers, but the file holds layers,experts", 0, 0, nil},
		{content, "steps,layers,experts", "", 0, 0, []step{{0, 0, v[:4], nil}, {0, 1, v[4:8], nil}, {1, 0, v[8:12], nil},
			{1, 1, v[12:], nil}}},
		{content, "layers,steps,experts", "", 0, 0, []step{{0, 0, v[:4], nil}, {0, 1, v[8:12], nil}, {1, 0, v[4:8], nil},
			{1, 1, v[12:], nil}}},
		{content, "layers,ranks,experts", "", 0, 2, []step{{0, 0, v[:8], nil}, {0, 1, v[8:], nil}}},
		{ids, "tokens,topk", "", 2, 0, []step{{0, 0, []int64{1, 2, 1}, nil}}},
		{ids, "tokens,layers", "", 1, 0, []step{{0, 0, []int64{1, 1, 0}, nil}, {0, 1, []int64{0, 1, 1}, nil}}},
	} {
		r, err := withAxes([]byte(c.content), c.axes)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%q: %+v, %v", c.axes, r, err)
			}
			continue
		}
		if err != nil || r.TopK != c.topK || r.Ranks != c.ranks || r.Window == strings.Contains(c.axes, "steps") {
			t.Fatalf("%s: %+v, %v", c.axes, r, err)
		}
		checkSteps(t, r, c.steps)
	}
}

func TestAxesRefused(t *testing.T) {
	for _, text := range []string{"steps,layers", "experts,experts", "tokens,experts", "x,experts", "layers,topk,ranks",
		","} {
		if axes, err := ParseAxes(text); err == nil {
			t.Errorf("%q: %v", text, axes)
		}
	}
	if axes, err := ParseAxes("Tokens, Layers,top-k"); err != nil || !slices.Equal(axes, Axes{"tokens", "layers", "topk"}) {
		t.Errorf("%v, %v", axes, err)
	}
}

// A deep list, a list of other depths and one of other lengths.
func TestNumbers(t *testing.T) {
	for text, shape := range map[string][]int64{"[]": {0}, "[[]]": {1, 0}, "[[1, 2.0],\n[3,4e0]]": {2, 2}, "[-1]": {1},
		"[[[[1]]]]": {1, 1, 1, 1}} {
		if a := arrayOf(celled(text)); !slices.Equal(a.Shape, shape) {
			t.Errorf("%s: %v", text, a)
		}
	}
	for _, text := range []string{"[[[[[1]]]]]", "[1,[2]]", "[[1],2]", "[[1],[2,3]]", "[[[]],[[1]]]", "[true]", `["a"]`,
		"[[1],[]]", "[[],[1]]", "7", `{"a":[1]}`, "[[[]],[1]]"} {
		if attempt(func() { arrayOf(celled(text)) }) == nil {
			t.Error(text)
		}
	}
}
