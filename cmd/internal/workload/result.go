package workload

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"gonum.org/v1/gonum/floats"
)

// Result is the measurement of a run; the command prints it as one JSON line. Times are the
// processor time of each rank. Loads are over all ranks together, of the timed steps.
type Result struct {
	SchemaVersion int          `json:"schema_version"`
	Kind          string       `json:"kind"` // "workload"
	PerfectRouter bool         `json:"perfect_router"`
	Shape         router.Shape `json:"shape"`
	Config
	Clock           string    `json:"clock"`             // "cpu"
	Steps           int       `json:"steps"`             // timed
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

// empty is the result of a run that is to come.
func (e *Engine) empty(steps int) Result {
	c := e.c
	tokens := int64(c.Ranks) * int64(c.Tokens)
	slots := tokens * int64(c.Gate.Shape.TopK)
	return Result{SchemaVersion: 1, Kind: "workload", Shape: c.Gate.Shape, Config: c, Clock: "cpu", Steps: steps,
		InputTokens:       tokens * int64(steps),
		ExpertMaxOverMean: make([]router.Number, c.Layers), RankMaxOverMean: make([]router.Number, c.Layers),
		ExpertFloor: router.Floor(slots, c.Gate.Shape.Experts), RankFloor: router.Floor(slots, c.Ranks)}
}

// count adds a layer's routing of one step to the result and the statistics.
func (e *Engine) count(res *Result, layer int) {
	all := router.NewLoad(e.c.Gate.Shape.Experts)
	var bySource [][]int64
	for _, r := range e.ranks {
		own := router.NewLoad(e.c.Gate.Shape.Experts)
		own.Add(r.ids)
		all.Merge(own)
		bySource = append(bySource, own.PerExpert)
	}
	last := len(e.statistics) - 1
	e.statistics[last] = append(e.statistics[last], bySource)
	res.ExpertMaxOverMean[layer] += all.Experts().MaxOverMean / router.Number(res.Steps)
	res.RankMaxOverMean[layer] += all.Ranks(e.layout).MaxOverMean / router.Number(res.Steps)
}

// finish adds the times of all steps, of which the last were routed so.
func (res *Result) finish(perfect bool) {
	res.PerfectRouter = perfect
	total := floats.Sum(res.IterationMS)
	res.StepMS = total / float64(res.Steps)
	res.TokensPerSecond = float64(res.InputTokens) / total * 1e3
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// statistics are the counts of every step, by step, layer, the rank whose
// tokens they are, and expert.
type statistics [][][][]int64

// WriteStatistics writes the counts of all steps since the last call into a folder in the
// layout of TensorRT-LLM's expert statistics (tensorrt_llm/_torch/moe/expert_statistic.py):
// a file per source rank with one I64 tensor of [experts] named "step_layer" for
// each, then meta_info.json. write writes a file whole or not at all. Without a step it
// writes nothing.
func (e *Engine) WriteStatistics(write func(name string, render func(io.Writer) error) error) error {
	steps, shape := e.statistics, e.c.Gate.Shape
	if e.statistics = nil; len(steps) == 0 {
		return nil
	}
	for r := range e.ranks {
		if err := write(fmt.Sprintf("rank%d.safetensors", r), func(w io.Writer) error {
			return steps.render(w, r)
		}); err != nil {
			return err
		}
	}
	return write("meta_info.json", func(w io.Writer) error {
		return json.NewEncoder(w).Encode(map[string]int{"num_experts": shape.Experts,
			"num_experts_per_token": shape.TopK})
	})
}

// render writes the counts of one rank's tokens.
func (s statistics) render(w io.Writer, rank int) error {
	var tensors []safetensors.Tensor
	var data []byte
	for step, layers := range s {
		for l, ranks := range layers {
			tensors = append(tensors, safetensors.Tensor{Name: fmt.Sprintf("%d_%d", step, l), DType: safetensors.I64,
				Shape: []int64{int64(len(ranks[rank]))}})
			data, _ = binary.Append(data, binary.LittleEndian, ranks[rank])
		}
	}
	head, err := safetensors.Header(nil, tensors)
	if err != nil {
		return err
	}
	_, err = w.Write(append(head, data...))
	return err
}
