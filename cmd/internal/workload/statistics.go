package workload

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/moebalance/moebalance/logits/safetensors"
)

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
		if err := write(fmt.Sprintf("rank%d.safetensors", r), func(w io.Writer) error { return res.renderRank(w, r) }); err != nil {
			return err
		}
	}
	return write("meta_info.json", func(w io.Writer) error {
		return json.NewEncoder(w).Encode(map[string]int{"num_experts": res.Shape.Experts, "num_experts_per_token": res.Shape.TopK})
	})
}

func (res Result) renderRank(w io.Writer, rank int) error {
	var tensors []safetensors.Tensor
	data := map[string][]byte{}
	for step, layers := range res.statistics {
		for l, ranks := range layers {
			name := fmt.Sprintf("%d_%d", step, l)
			tensors = append(tensors, safetensors.Tensor{Name: name, DType: safetensors.I64, Shape: []int64{int64(res.Shape.Experts)}})
			var raw []byte
			for _, n := range ranks[rank] {
				raw = binary.LittleEndian.AppendUint64(raw, uint64(n))
			}
			data[name] = raw
		}
	}
	return safetensors.Write(w, nil, tensors, data)
}
