package workload

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// statistics are the counts of every timed step, by step, layer, the rank whose
// tokens they are, and expert.
type statistics [][][][]int64

// WriteStatistics writes the counts into a folder in the layout of
// TensorRT-LLM's expert statistics (tensorrt_llm/_torch/expert_statistic.py):
// meta_info.json, and a file per source rank with one I64 tensor of [experts]
// named "step_layer" for each. The launch must have had Config.Record set.
func (res Result) WriteStatistics(dir string) error {
	if res.statistics == nil {
		return errors.New("no counts were recorded")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	meta, err := json.Marshal(map[string]int{"num_experts": res.Shape.Experts, "num_experts_per_token": res.Shape.TopK})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "meta_info.json"), meta, 0o644); err != nil {
		return err
	}
	for r := range res.Ranks {
		if err := res.writeRank(filepath.Join(dir, fmt.Sprintf("rank%d.safetensors", r)), r); err != nil {
			return err
		}
	}
	return nil
}

func (res Result) writeRank(path string, rank int) (err error) {
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
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return safetensors.Write(f, nil, tensors, data)
}
