package workload

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// Result is what one launch measured; the command prints it as one JSON line.
// Times are the processor time of each rank. Loads are over all ranks together.
type Result struct {
	SchemaVersion   int          `json:"schema_version"`
	Kind            string       `json:"kind"` // "workload"
	PerfectRouter   bool         `json:"perfect_router"`
	Router          string       `json:"router"`  // the routing method
	Experts         string       `json:"experts"` // "loop": one product per expert and matrix
	Shape           router.Shape `json:"shape"`
	Hidden          int          `json:"hidden"`
	Intermediate    int          `json:"intermediate"`
	Layers          int          `json:"layers"`
	Ranks           int          `json:"ranks"`
	Clock           string       `json:"clock"` // "cpu", or "wall" where the system tells no processor time of a thread
	TokensPerRank   int          `json:"tokens_per_rank"`
	Steps           int          `json:"steps"`
	Warmup          int          `json:"warmup"`
	Skew            float64      `json:"skew"`
	Seed            uint64       `json:"seed"`
	Placement       string       `json:"placement"`         // Contiguous, or the file of another
	InputTokens     int64        `json:"input_tokens"`      // Ranks·TokensPerRank·Steps
	TokensPerSecond float64      `json:"tokens_per_second"` // InputTokens over the sum of IterationMS
	StepMS          float64      `json:"step_ms"`           // mean of IterationMS
	IterationMS     []float64    `json:"iteration_ms"`      // every timed step

	// Per layer, the mean over the timed steps of max/mean in a step.
	ExpertMaxOverMean []router.Number `json:"expert_max_over_mean"`
	RankMaxOverMean   []router.Number `json:"rank_max_over_mean"`
	// What the best assignment could reach in a step.
	ExpertFloor router.Number `json:"expert_floor"`
	RankFloor   router.Number `json:"rank_floor"`
	// Slots per layer and rank over all timed steps; a row adds up to
	// InputTokens·TopK.
	RankSlots [][]int64 `json:"rank_slots"`

	// Per rank, milliseconds of the mean step in which it worked, and in which
	// it waited for others after the phase.
	DispatchMS     []float64 `json:"dispatch_ms"`
	DispatchWaitMS []float64 `json:"dispatch_wait_ms"`
	ExpertsMS      []float64 `json:"experts_ms"`
	ExpertsWaitMS  []float64 `json:"experts_wait_ms"`
	// The time in experts of every timed step, by layer and rank.
	StepExpertsMS [][][]float64 `json:"step_experts_ms"`
	CombineMS     []float64     `json:"combine_ms"`
	CombineWaitMS []float64     `json:"combine_wait_ms"`

	statistics statistics
}

// ReadResult reads the JSON line of a launch; not ok if it is something else.
func ReadResult(r io.Reader) (res Result, ok bool) {
	head := make([]byte, 64)
	if n, _ := io.ReadFull(r, head); !bytes.Contains(head[:n], []byte(`"kind":"workload"`)) {
		return res, false
	}
	return res, json.NewDecoder(io.MultiReader(bytes.NewReader(head), r)).Decode(&res) == nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// times spreads each rank's time in a phase over the timed steps.
func (res *Result) times(ranks []*rank) {
	perStep := func(into *[]float64, d time.Duration) { *into = append(*into, milliseconds(d)/float64(res.Steps)) }
	for _, r := range ranks {
		perStep(&res.DispatchMS, r.work[dispatch])
		perStep(&res.DispatchWaitMS, r.wait[dispatch])
		perStep(&res.ExpertsMS, r.work[experts])
		perStep(&res.ExpertsWaitMS, r.wait[experts])
		perStep(&res.CombineMS, r.work[combine])
		perStep(&res.CombineWaitMS, r.wait[combine])
	}
}

// statistics are the counts of every timed step, by step, layer, the rank whose
// tokens they are, and expert.
type statistics [][][][]int64

// WriteStatistics writes the counts into a folder in the layout of
// TensorRT-LLM's expert statistics (tensorrt_llm/_torch/expert_statistic.py):
// a file per source rank with one I64 tensor of [experts] named "step_layer" for
// each, then meta_info.json. write writes a file whole or not at all. The launch
// must have had Config.Record set.
func (res Result) WriteStatistics(write func(name string, render func(io.Writer) error) error) error {
	if res.statistics == nil {
		return errors.New("no counts were recorded")
	}
	for r := range res.Ranks {
		if err := write(fmt.Sprintf("rank%d.safetensors", r),
			func(w io.Writer) error { return res.renderRank(w, r) }); err != nil {
			return err
		}
	}
	return write("meta_info.json", func(w io.Writer) error {
		return json.NewEncoder(w).Encode(map[string]int{"num_experts": res.Shape.Experts,
			"num_experts_per_token": res.Shape.TopK})
	})
}

func (res Result) renderRank(w io.Writer, rank int) error {
	var tensors []safetensors.Tensor
	data := map[string][]byte{}
	for step, layers := range res.statistics {
		for l, ranks := range layers {
			name := fmt.Sprintf("%d_%d", step, l)
			tensors = append(tensors, safetensors.Tensor{Name: name, DType: safetensors.I64,
				Shape: []int64{int64(res.Shape.Experts)}})
			var raw []byte
			for _, n := range ranks[rank] {
				raw = binary.LittleEndian.AppendUint64(raw, uint64(n))
			}
			data[name] = raw
		}
	}
	return safetensors.Write(w, nil, tensors, data)
}
