package workload

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// Result is the measurement of a run; the command prints it as one JSON line. Times are the
// processor time of each rank. Loads are over all ranks together, of the timed steps.
type Result struct {
	SchemaVersion int          `json:"schema_version"`
	Kind          string       `json:"kind"` // "workload"
	Shape         router.Shape `json:"shape"`
	Config
	Clock           string    `json:"clock"`             // "cpu"
	InputTokens     int64     `json:"input_tokens"`      // Ranks·TokensPerRank·Steps
	TokensPerSecond float64   `json:"tokens_per_second"` // InputTokens over the sum of IterationMS
	StepMS          float64   `json:"step_ms"`           // mean of IterationMS
	IterationMS     []float64 `json:"iteration_ms"`      // every timed step

	// Per layer, the mean over the timed steps of max/mean in a step.
	ExpertMaxOverMean []router.Number `json:"expert_max_over_mean"`
	RankMaxOverMean   []router.Number `json:"rank_max_over_mean"`
	// What the best assignment could reach in a step.
	ExpertFloor router.Number `json:"expert_floor"`
	RankFloor   router.Number `json:"rank_floor"`
}

// counts are the slots of a step: by layer and the rank whose tokens they are.
type counts [][]router.Load

// result is the measurement of the timed steps.
func (e *Engine) result(times []float64) Result {
	shape, n, total := e.Gate.Shape, len(times), floats.Sum(times)
	tokens := int64(e.Ranks) * int64(e.Tokens)
	r := Result{SchemaVersion: 1, Kind: "workload", Shape: shape, Config: e.Config,
		Clock: "cpu", InputTokens: tokens * int64(n), TokensPerSecond: float64(tokens) * float64(n) / total * 1e3,
		StepMS: total / float64(n), IterationMS: times,
		ExpertMaxOverMean: make([]router.Number, e.Layers), RankMaxOverMean: make([]router.Number, e.Layers),
		ExpertFloor: router.Floor(tokens*int64(shape.TopK), shape.Experts),
		RankFloor:   router.Floor(tokens*int64(shape.TopK), e.Ranks)}
	for _, layers := range e.routed {
		for l, ranks := range layers {
			all := router.NewLoad(shape.Experts)
			for _, load := range ranks {
				all.Merge(load)
			}
			r.ExpertMaxOverMean[l] += all.Experts().MaxOverMean / router.Number(n)
			r.RankMaxOverMean[l] += all.Ranks(e.layout).MaxOverMean / router.Number(n)
		}
	}
	return r
}

// WriteCounts writes the counts of all timed steps into a folder, in the layout of TensorRT-LLM's expert
// statistics (tensorrt_llm/_torch/moe/expert_statistic.py): a file per source rank with one I64 tensor of
// [experts] named "step_layer" for each, then meta_info.json.
func (e *Engine) WriteCounts(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for rank := range e.ranks {
		path := filepath.Join(folder, fmt.Sprintf("rank%d.safetensors", rank))
		if err := target.WriteOwn(path, func(w io.Writer) error { return e.writeCounts(w, rank) }); err != nil {
			return err
		}
	}
	return target.WriteOwn(filepath.Join(folder, "meta_info.json"), func(w io.Writer) error {
		return json.NewEncoder(w).Encode(map[string]int{"num_experts": e.Gate.Shape.Experts,
			"num_experts_per_token": e.Gate.Shape.TopK})
	})
}

// writeCounts writes the counts of one rank's tokens.
func (e *Engine) writeCounts(w io.Writer, rank int) error {
	var tensors []safetensors.Tensor
	var data []byte
	for step, layers := range e.routed {
		for l, ranks := range layers {
			slots := ranks[rank].PerExpert
			tensors = append(tensors, safetensors.Tensor{Name: fmt.Sprintf("%d_%d", step, l), DType: safetensors.I64,
				Shape: []int64{int64(len(slots))}})
			data, _ = binary.Append(data, binary.LittleEndian, slots)
		}
	}
	head, err := safetensors.Header(nil, tensors)
	if err != nil {
		return err
	}
	_, err = w.Write(append(head, data...))
	return err
}
