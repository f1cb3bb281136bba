package place

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/testdata/require"
)

// A campaign of two ranks at 64 and 8,192 tokens (testdata/field) predicts at the tokens of a step, and on two
// ranks only. Learned and judged loads are 4, 3, 1 and 2 of 10: max/mean is 1.4 where ranks own 0 and 1, 2 and 3,
// and 1 where 4 is with 1.
func TestDose(t *testing.T) {
	data := require.Value(os.ReadFile("../../testdata/field/results/vllm-two-h100/campaign.json"))
	var file gain.Result
	require.NoError(t, errors.Join(json.Unmarshal(data, &file), file.Upgrade()))
	windows := Whole(read(counted(t, "0,5,0,4000\n0,5,1,3000\n0,5,2,1000\n0,5,3,2000\n"),
		counted(t, "0,5,0,4001\n0,5,1,3001\n0,5,2,1001\n0,5,3,2001\n")))
	for _, test := range []struct {
		ranks   int
		tokens  float64
		want    int
		refused bool // the last
	}{{2, 0, 2, false}, {2, 7390, 1, false}, {2, 8990, 1, false}, {2, 7350, 1, true}, {2, 9030, 1, true}, // by a tenth
		{2, 64, 1, true}, {2, 2048, 1, true}, {4, 8192, 1, true}} {
		res, err := Judge(windows[:1], windows[1:], Options{Ranks: []int{test.ranks}, Redundant: []int{0}, Threshold: 0.1,
			Dose: &Dose{Tokens: test.tokens, Result: file}})
		require.NoError(t, err)
		p := res.Placements[0]
		if len(p.Gains) != test.want {
			t.Fatalf("%+v: %+v", test, p.Gains)
		}
		last := p.Gains[len(p.Gains)-1]
		if (last.Refused != nil) != test.refused || last.Estimate.Defined() == test.refused {
			t.Errorf("%+v: %+v", test, last)
		}
		want := file.Predict(test.ranks, p.Baseline, p.Judged)[1]
		if !test.refused && (last != want || math.Abs(float64(last.From)-1.4) > 1e-3 ||
			last.To != 1) {
			t.Errorf("%+v: %+v, want %+v", test, last, want)
		}
	}
	res, err := Judge(windows[:1], nil, Options{Ranks: []int{2}, Redundant: []int{0}, Dose: &Dose{Result: file}})
	if err != nil || res.Placements[0].Gains != nil {
		t.Errorf("predicted without a judged window: %+v, %v", res, err)
	}
}
