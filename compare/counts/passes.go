package counts

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/input"
)

var (
	torchRecord = regexp.MustCompile(`^expert_distribution_recorder_.*\.pt$`)
	torchRank   = regexp.MustCompile(`_(\d{1,5})\.pt$`)
	torchStamp  = regexp.MustCompile(`^expert_distribution_recorder_(\d{9,11}(?:\.\d{1,9})?)(?:_\d{1,5})?\.pt$`)
)

// torchTime is when a dump was written, as its name says; 0 where it does not.
func torchTime(path string) float64 {
	if m := torchStamp.FindStringSubmatch(filepath.Base(path)); m != nil {
		seconds, _ := strconv.ParseFloat(m[1], 64) // digits only
		return seconds
	}
	return 0
}

// readTorchFolder reads one dump per rank and sums the passes of the same
// number. A single file without rank is a stat dump.
func readTorchFolder(d *document, r *Record) error {
	files := d.named(torchRecord)
	r.Time = torchTime(files[0])
	if len(files) == 1 {
		dump, err := openDocument(files[0])
		if err != nil {
			return fmt.Errorf("%s: %w", files[0], err)
		}
		if dump.has("logical_count") {
			r.Format = torchStatFormat
			return readLogicalCount(dump, r)
		}
	}
	r.Ranks = len(files)
	if err := bounded(0, r.Ranks); err != nil {
		return err
	}
	byRank := make([]string, len(files))
	for _, path := range files {
		m := torchRank.FindStringSubmatch(path)
		if m == nil {
			return fmt.Errorf("%s: want one dump per rank, ending in _0.pt, _1.pt, …, or a single stat dump", path)
		}
		rank, _ := strconv.Atoi(m[1]) // five digits at most
		if rank >= len(files) || byRank[rank] != "" {
			return fmt.Errorf("%s: want one dump of each rank from 0 to %d; are there several recordings in the folder?", path,
				len(files)-1)
		}
		byRank[rank] = path
	}
	passes := map[stepKey]*torchPass{}
	for rank, path := range byRank {
		if err := addTorchRank(path, rank, passes); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	dropped := 0
	for _, pass := range passes {
		if r.Experts = max(r.Experts, mapped(pass.logical)); pass.ranks != r.Ranks {
			dropped++
		}
	}
	if dropped > 0 {
		r.warn(Incomplete, "excluded", dropped, "passes", len(passes), "ranks", r.Ranks)
	}
	for key, pass := range passes {
		if pass.ranks == r.Ranks {
			key.phase = pass.phase
			if err := r.addCopies(key, pass.copies, pass.logical); err != nil {
				return err
			}
		}
	}
	return nil
}

// Incomplete is the code of the warning that passes are left out that not every rank recorded: the
// load is the sum over ranks, and a part of it has another balance.
const Incomplete = "incomplete_passes"

// torchPass is one layer of one pass, summed over the ranks that recorded it.
type torchPass struct {
	copies  []int64 // slots per physical copy
	logical []int32 // the expert of each copy
	phase   Phase
	// ranks is how many ranks recorded the pass, −1 where one is missing or comes twice: the load
	// is the sum over the ranks, and a part of it has another balance.
	ranks int
}

// forwardModes are SGLang's, in dumps per token. An idle rank (4) has no tokens.
var forwardModes = map[int64]Phase{1: Prefill, 2: Decode, 3: Mixed}

// addTorchRank adds the passes in one rank's dump. Ranks come in order.
func addTorchRank(path string, rank int, passes map[stepKey]*torchPass) error {
	text, err := input.ReadFile(path, maxFile)
	if err != nil {
		return err
	}
	f, err := openTorch(text)
	if err != nil {
		return err
	}
	root, _ := f.Root.(tensor.Dict)
	records, ok := root.List("records")
	if !ok {
		return errors.New("want a list of records: this is no dump of passes")
	}
	p2l, err := matrix(f, root, "last_physical_to_logical_map")
	if err != nil {
		return err
	}
	for i, v := range records {
		record, _ := v.(tensor.Dict)
		pass, ok := record["forward_pass_id"].(int64)
		if !ok {
			return fmt.Errorf("record %d has no forward_pass_id", i)
		}
		load, err := matrix(f, record, "global_physical_count")
		if err == nil && !slices.Equal(load.Shape, p2l.Shape) {
			err = fmt.Errorf("counts of %v, but a map of %v", load.Shape, p2l.Shape)
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		mode, _ := record["forward_mode"].(int64)
		for layer := range int(load.Shape[0]) {
			key := stepKey{iteration: pass, layer: layer}
			if passes[key] == nil {
				passes[key] = &torchPass{}
			}
			if err := passes[key].add(rank, mode, load.Row(layer).Values, p2l.Row(layer).Values); err != nil {
				return fmt.Errorf("record %d, layer %d: %w", i, layer, err)
			}
		}
	}
	return nil
}

// add adds one rank's counts per copy; all ranks must have the same map.
func (t *torchPass) add(rank int, mode int64, counts, logical []int64) error {
	if t.ranks == rank {
		t.ranks++
	} else {
		t.ranks = -1
	}
	switch phase := cmp.Or(forwardModes[mode], t.phase); {
	case t.phase == "" || phase == t.phase:
		t.phase = phase
	default:
		t.phase = Mixed
	}
	experts, err := expertsOf(logical)
	if err == nil {
		err = checkCounts(counts)
	}
	if err != nil {
		return err
	}
	if t.copies == nil {
		t.copies, t.logical = make([]int64, len(counts)), experts
	}
	if !slices.Equal(experts, t.logical) {
		return errors.New("the map of copies differs from that on other ranks")
	}
	for i, n := range counts {
		t.copies[i] += n
	}
	return nil
}

// matrix reads a tensor of [layers, copies].
func matrix(f *tensor.Torch, d tensor.Dict, key string) (tensor.Array, error) {
	a, err := f.Array(d[key])
	if err == nil && (len(a.Shape) != 2 || a.Shape[0] < 1 || a.Shape[0] > maxLayers || a.Shape[1] > maxExperts) {
		err = fmt.Errorf("want [layers, copies], have %v", a.Shape)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return a, err
}

// loadStats is one line of vLLM's offline EPLB: about the model, or the slots of each physical
// copy in one step.
type loadStats struct {
	Type  string    `json:"record_type"`
	Step  int64     `json:"step"`
	Model string    `json:"model"`
	Ranks int       `json:"num_ranks"`
	Load  [][]int64 `json:"expert_load"`
	Map   [][]int64 `json:"p2l_map"`
}

const loadStatsType = "eplb_load_stats"

func isLoadStats(v value) bool {
	var line loadStats
	return v.into(&line) == nil && line.Type == loadStatsType
}

// readLoadStats reads load statistics of vLLM's offline EPLB, one step a line. Steps of several
// models in one file are judged apart.
func readLoadStats(d *document, r *Record) error {
	var lines []loadStats
	models, about := map[string]bool{}, loadStats{}
	for i, v := range d.values {
		var line loadStats
		if err := v.into(&line); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		if line.Model, line.Ranks = cmp.Or(line.Model, about.Model), cmp.Or(line.Ranks, about.Ranks); line.Type != loadStatsType {
			about = line
			continue
		}
		if r.Ranks = cmp.Or(r.Ranks, line.Ranks); line.Ranks != r.Ranks || bounded(0, line.Ranks) != nil {
			return fmt.Errorf("line %d: want steps on one number of ranks, at most %d, have %d and %d", i+1, maxRanks, r.Ranks,
				line.Ranks)
		}
		for _, layer := range line.Map {
			experts, err := expertsOf(layer)
			if err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
			r.Experts = max(r.Experts, mapped(experts))
		}
		lines, models[line.Model] = append(lines, line), true
	}
	for _, line := range lines {
		key := stepKey{iteration: line.Step}
		if len(models) > 1 {
			key.phase = Phase(line.Model)
		}
		if len(line.Load) != len(line.Map) || len(line.Load) > maxLayers {
			return fmt.Errorf("step %d: want as many layers in expert_load as in p2l_map, have %d and %d", line.Step,
				len(line.Load), len(line.Map))
		}
		for layer, load := range line.Load {
			key.layer = layer
			experts, _ := expertsOf(line.Map[layer]) // read before
			if len(load) != len(experts) {
				return fmt.Errorf("%v: want as many copies in expert_load as in p2l_map, have %d and %d", key, len(load),
					len(experts))
			}
			if err := r.addCopies(key, load, experts); err != nil {
				return err
			}
		}
	}
	return nil
}
