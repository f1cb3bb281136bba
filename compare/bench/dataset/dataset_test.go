package dataset

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// The bytes of a seed are a promise: other machines and versions have the same.
func TestDatasetBytes(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, (Spec{Requests: 2, InputMean: 3, InputSD: 1, OutputMean: 2, Seed: 1}).Write(&out))
	const want = `{"task_id":0,"input_ids":[17461,21108,29754,27980],"output_tokens":2}` + "\n" +
		`{"task_id":1,"input_ids":[17433,3162,28039,26000],"output_tokens":2}` + "\n"
	if out.String() != want {
		t.Errorf("wrote\n%s\nwant\n%s", out.String(), want)
	}
}

// 2000 lengths of mean 100 and deviation 20 by the bytes that trtllm-bench reads; prompts do not change with the
// output lengths, and do with the seed.
func TestDataset(t *testing.T) {
	d := Spec{Requests: 2000, InputMean: 100, InputSD: 20, OutputMean: 50, Seed: 1}
	written := func(d Spec) (prompts string, lengths []float64, ids [10]float64) {
		var out bytes.Buffer
		require.NoError(t, d.Write(&out))
		for line := range strings.Lines(out.String()) {
			var r struct {
				InputIDs []int `json:"input_ids"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			lengths = append(lengths, float64(len(r.InputIDs)))
			for _, id := range r.InputIDs {
				ids[(id-1000)/2900]++
			}
			prompt, _, _ := strings.Cut(line, `,"output_tokens"`)
			prompts += prompt
		}
		return prompts, lengths, ids
	}
	prompts, lengths, ids := written(d)
	// ⌈x⌉ adds half a token to the mean on average: 100.5 ± 4·20/√2000.
	if mean, sd := stat.MeanStdDev(lengths, nil); len(lengths) != 2000 || math.Abs(mean-100.5) > 1.8 ||
		math.Abs(sd-20) > 1.3 {
		t.Errorf("%d lengths have mean %v and deviation %v, want 100.5 and 20", len(lengths), mean, sd)
	}
	// Ten parts of equal chance of the ids from 1000 to below 30000, about 20,000 times each: within five deviations.
	for id, times := range ids {
		if want := floats.Sum(lengths) / 10; math.Abs(times-want) > 5*math.Sqrt(want) {
			t.Errorf("id %d drawn %v times, want about %v", id, times, want)
		}
	}
	d.OutputMean, d.OutputSD = 300, 100
	if again, _, _ := written(d); again != prompts {
		t.Error("other output lengths changed the prompts")
	}
	d.Seed = 10
	if again, _, _ := written(d); again == prompts {
		t.Error("another seed gave the same prompts")
	}
}
