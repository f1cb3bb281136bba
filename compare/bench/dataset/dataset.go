// Package dataset writes synthetic requests for benchmarks.
package dataset

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
)

// Spec describes a synthetic set of requests: lengths drawn from normal
// distributions, random token ids. It is the token-norm-dist data set of the
// TensorRT-LLM documents, with a seed of its own, so that both arms and every
// machine can have the same one. Its fields are flags.
type Spec struct {
	Requests   int     `flag:"num-requests" preset:"1000"`
	InputMean  float64 `flag:"input-mean" preset:"1024"` // tokens of a prompt
	InputSD    float64 `flag:"input-stdev"`
	OutputMean float64 `flag:"output-mean" preset:"128"` // tokens to generate
	OutputSD   float64 `flag:"output-stdev"`
	Seed       uint64  `flag:"seed" preset:"1"`
}

// lowID and highID bound the token ids drawn: behind special ones, and in every vocabulary.
const lowID, highID = 1000, 30000

// longest bounds a drawn length, so that a slip in a flag does not fill a disk.
const longest = 1 << 20

// Check reports what is wrong with the spec.
func (s Spec) Check() error {
	within := func(least float64, lengths ...float64) bool {
		return !slices.ContainsFunc(lengths, func(l float64) bool { return !(l >= least && l <= longest) })
	}
	switch {
	case s.Requests < 1 || s.Requests > 10_000_000:
		return fmt.Errorf("%d requests: want 1 to 10 million", s.Requests)
	case !within(1, s.InputMean, s.OutputMean) || !within(0, s.InputSD, s.OutputSD):
		return fmt.Errorf("lengths of %g ± %g and %g ± %g: want means from 1 and deviations from 0 to %d tokens", s.InputMean,
			s.InputSD, s.OutputMean, s.OutputSD, longest)
	}
	return nil
}

// request is a line as trtllm-bench reads it.
type request struct {
	ID     int   `json:"task_id"`
	Input  []int `json:"input_ids"`
	Output int   `json:"output_tokens"`
}

// Write writes one JSON object per line:
//
//	{"task_id":0,"input_ids":[17,4],"output_tokens":128}
//
// A length is max(1, ⌈x⌉) with x drawn from the normal distribution, as in
// benchmarks/cpp/utils/utils.py (get_norm_dist_lengths); lengths above 2²⁰ are
// cut there. Input lengths, output lengths and ids have streams of their own:
// changing the output lengths leaves the prompts alone.
func (s Spec) Write(w io.Writer) error {
	b, inputs, outputs, ids := bufio.NewWriterSize(w, 1<<16), s.stream(1), s.stream(2), s.stream(3)
	lines := json.NewEncoder(b)
	for i := range s.Requests {
		r := request{i, make([]int, length(inputs, s.InputMean, s.InputSD)), length(outputs, s.OutputMean, s.OutputSD)}
		for j := range r.Input {
			r.Input[j] = lowID + ids.IntN(highID-lowID)
		}
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	return b.Flush()
}

func (s Spec) stream(n uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, n)) }

func length(r *rand.Rand, mean, sd float64) int {
	return int(min(longest, max(1, math.Ceil(mean+sd*r.NormFloat64()))))
}
