// Package dataset writes synthetic requests for benchmarks.
package dataset

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
)

// Spec describes a synthetic set of requests: lengths drawn from normal
// distributions, random token ids. It is the token-norm-dist data set of the
// TensorRT-LLM documents, with a seed of its own, so that both arms and every
// machine can have the same one.
type Spec struct {
	Requests   int
	InputMean  float64 // tokens of a prompt
	InputSD    float64
	OutputMean float64 // tokens to generate
	OutputSD   float64
	// LowID and HighID bound the token ids drawn, HighID excluded: a model's
	// vocabulary without its special tokens.
	LowID, HighID int
	Seed          uint64
}

// longest bounds a drawn length, so that a slip in a flag does not fill a disk.
const longest = 1 << 20

// Check reports what is wrong with d.
func (d Spec) Check() error {
	switch {
	case d.Requests < 1 || d.Requests > 10_000_000:
		return fmt.Errorf("%d requests: want 1 to 10 million", d.Requests)
	case !(d.InputMean >= 1 && d.InputMean <= longest) || !(d.OutputMean >= 1 && d.OutputMean <= longest):
		return fmt.Errorf("mean lengths %g and %g: want 1 to %d tokens", d.InputMean, d.OutputMean, longest)
	case !(d.InputSD >= 0 && d.InputSD <= longest) || !(d.OutputSD >= 0 && d.OutputSD <= longest):
		return fmt.Errorf("standard deviations %g and %g: want 0 to %d tokens", d.InputSD, d.OutputSD, longest)
	case d.LowID < 0 || d.HighID <= d.LowID || d.HighID > math.MaxInt32:
		return fmt.Errorf("token ids from %d to below %d: want 0 ≤ first < last", d.LowID, d.HighID)
	}
	return nil
}

// Summary is what was written.
type Summary struct {
	Requests     int    `json:"requests"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	Bytes        int64  `json:"bytes"`
	SHA256       string `json:"sha256"`
}

// Write writes one JSON object per line, as trtllm-bench reads them:
//
//	{"task_id":0,"input_ids":[17,4],"output_tokens":128}
//
// A length is max(1, ⌈x⌉) with x drawn from the normal distribution, as in
// benchmarks/cpp/utils/utils.py (get_norm_dist_lengths); lengths above 2²⁰ are
// cut there. Input lengths, output lengths and ids have streams of their own:
// changing the output lengths leaves the prompts alone.
func (d Spec) Write(w io.Writer) (Summary, error) {
	sum := sha256.New()
	count := &counter{w: io.MultiWriter(w, sum)}
	b := bufio.NewWriterSize(count, 1<<16)
	inputs, outputs, ids := d.stream(1), d.stream(2), d.stream(3)
	s := Summary{Requests: d.Requests}
	var line []byte
	for i := range d.Requests {
		in, out := length(inputs, d.InputMean, d.InputSD), length(outputs, d.OutputMean, d.OutputSD)
		line = append(line[:0], `{"task_id":`...)
		line = strconv.AppendInt(line, int64(i), 10)
		line = append(line, `,"input_ids":[`...)
		for j := range in {
			if j > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendInt(line, int64(d.LowID+ids.IntN(d.HighID-d.LowID)), 10)
		}
		line = append(line, `],"output_tokens":`...)
		line = strconv.AppendInt(line, int64(out), 10)
		line = append(line, "}\n"...)
		if _, err := b.Write(line); err != nil {
			return s, err
		}
		s.InputTokens += int64(in)
		s.OutputTokens += int64(out)
	}
	if err := b.Flush(); err != nil {
		return s, err
	}
	s.Bytes, s.SHA256 = count.n, hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

func (d Spec) stream(n uint64) *rand.Rand { return rand.New(rand.NewPCG(d.Seed, n)) }

func length(r *rand.Rand, mean, sd float64) int {
	return int(min(longest, max(1, math.Ceil(mean+sd*r.NormFloat64()))))
}

// counter counts what passes through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
