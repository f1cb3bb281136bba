package counts

import (
	"encoding/json"
	"fmt"
)

// vLLM has no stable dump of expert loads; these are the layouts of its feature
// branches, told apart by their keys: the files of expert_load_dump_dir (vLLM pull
// request 39178 names it), and the JSON lines of eplb_load_stats.

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
