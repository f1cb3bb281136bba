package counts

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// vLLM has no stable dump of expert loads; these are the layouts of its feature
// branches, told apart by their keys.

// readVLLMDump reads snapshots of physical expert loads. Of the two loads in a
// snapshot it takes the latest pass; the window's sum only where there is no
// other.
func readVLLMDump(s *source, r *Record) error {
	var dump struct {
		WorldSize int `json:"world_size"`
		Experts   int `json:"num_logical_experts"`
		Snapshots []struct {
			Step    int64     `json:"step"`
			Window  [][]int64 `json:"window_expert_load"`
			Latest  [][]int64 `json:"latest_expert_load"`
			Logical [][]int32 `json:"physical_to_logical_map"`
		} `json:"snapshots"`
	}
	if err := s.object(&dump); err != nil {
		return err
	}
	if err := bounded(dump.Experts, dump.WorldSize); err != nil {
		return err
	}
	r.Experts, r.Ranks = dump.Experts, dump.WorldSize
	for i, snapshot := range dump.Snapshots {
		load := snapshot.Latest
		if load == nil {
			load, r.Window = snapshot.Window, true
		}
		if err := r.addPhysicalLayers(snapshot.Step, load, snapshot.Logical); err != nil {
			return fmt.Errorf("snapshot %d: %w", i, err)
		}
	}
	return nil
}

func (r *Record) addPhysicalLayers(step int64, load [][]int64, logical [][]int32) error {
	if len(load) != len(logical) {
		return fmt.Errorf("loads of %d layers, but maps of %d", len(load), len(logical))
	}
	for layer := range load {
		if err := r.addPhysical(stepKey{iteration: step, layer: layer}, load[layer], logical[layer]); err != nil {
			return err
		}
	}
	return nil
}

// vllmLine is one line of the JSONL of EPLB.
type vllmLine struct {
	RecordType string    `json:"record_type"`
	Version    int       `json:"version"`
	Step       int64     `json:"step"`
	Ranks      int       `json:"num_ranks"`
	Load       [][]int64 `json:"expert_load"`
	Logical    [][]int32 `json:"p2l_map"`
}

// readVLLMLines reads eplb_load_stats records; records of other types, such as
// the initial mapping, are left out.
func readVLLMLines(s *source, r *Record) error {
	r.Window = true
	var lines []vllmLine
	for i, object := range s.values {
		var line vllmLine
		if err := json.Unmarshal(object, &line); err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
		if line.RecordType != "eplb_load_stats" {
			continue
		}
		if line.Version != 1 {
			return fmt.Errorf("record %d: want version 1, have %d", i+1, line.Version)
		}
		lines = append(lines, line)
		for _, row := range line.Logical {
			r.Experts = max(r.Experts, mapped(row))
		}
		if r.Ranks != 0 && line.Ranks != r.Ranks {
			return fmt.Errorf("record %d: %d ranks, the records before have %d", i+1, line.Ranks, r.Ranks)
		}
		r.Ranks = line.Ranks
	}
	if err := bounded(r.Experts, r.Ranks); err != nil {
		return err
	}
	for _, line := range lines {
		if err := r.addPhysicalLayers(line.Step, line.Load, line.Logical); err != nil {
			return err
		}
	}
	return nil
}

// readVLLMSparse reads one line per engine, step and layer, with pairs of
// logical expert and count, and sums over the engines.
func readVLLMSparse(s *source, r *Record) error {
	type engineStep struct {
		stepKey
		engine int
	}
	seen := map[engineStep]bool{}
	steps := stepSet{}
	for i, object := range s.values {
		var line struct {
			Engine  int        `json:"engine"`
			Step    int64      `json:"step"`
			Layer   int        `json:"layer"`
			Experts int        `json:"num_logical_experts"`
			Counts  [][2]int64 `json:"counts"`
		}
		if err := json.Unmarshal(object, &line); err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
		r.Experts = cmp.Or(r.Experts, line.Experts)
		if err := bounded(line.Experts, 0); err != nil || line.Experts != r.Experts {
			return fmt.Errorf("record %d: want %d experts and at most %d, have %d", i+1, r.Experts, maxExperts, line.Experts)
		}
		key := stepKey{iteration: line.Step, layer: line.Layer}
		if at := (engineStep{key, line.Engine}); seen[at] {
			return fmt.Errorf("record %d: engine %d, step %d, layer %d is recorded twice", i+1, line.Engine, line.Step, line.Layer)
		} else {
			seen[at] = true
		}
		load := steps.step(key, r.Experts).Load
		for _, pair := range line.Counts {
			if pair[0] < 0 || pair[0] >= int64(r.Experts) || pair[1] < 0 || pair[1] > maxCount {
				return fmt.Errorf("record %d: want pairs of an expert below %d and a count, have %v", i+1, r.Experts, pair)
			}
			load.PerExpert[pair[0]] += pair[1]
		}
	}
	r.addSteps(steps)
	return nil
}
