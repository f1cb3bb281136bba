package counts

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/input"
)

// readTorch reads one dump of SGLang's expert distribution recorder that counts
// over all ranks, or one tensor.
func readTorch(s *source, r *Record) error {
	f, err := tensor.OpenTorch(s.members)
	r.Time = torchTime(s.path)
	switch {
	case err != nil:
		return err
	case f.Root["logical_count"] != nil:
		return readTorchStat(f, s.axes, r)
	case f.Root["records"] != nil:
		return errors.New("this is one rank's dump of passes, and the load is the sum over the ranks: give the folder that " +
			"holds all of them")
	case f.Root[tensor.Alone] != nil:
		a, err := f.Array(f.Root, tensor.Alone)
		if err == nil {
			err = r.addArray(a, s.axes, nil)
		}
		return err
	}
	return errors.New("want a dump of SGLang's expert distribution recorder, which has logical_count or records, have " +
		"another file of torch.save")
}

// readTorchStat reads logical_count, which is summed over the ranks already. Its steps
// are a ring buffer: unordered, with rows of zeros where nothing was recorded, which
// are left out.
func readTorchStat(f *tensor.Torch, asked Axes, r *Record) error {
	a, err := f.Array(f.Root, "logical_count")
	if err != nil {
		return err
	}
	for _, key := range mapKeys {
		if f.Root[key] != nil {
			placed, err := f.Array(f.Root, key)
			if err != nil {
				return err
			}
			r.keepMap(placed)
		}
	}
	if err := r.addArray(a, asked, logicalAxes(a)); err != nil {
		return fmt.Errorf("logical_count: %w", err)
	}
	return nil
}

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
func readTorchFolder(s *source, r *Record) error {
	files := s.named(torchRecord)
	r.Time = torchTime(files[0])
	if len(files) == 1 {
		f, err := openRecorder(files[0])
		if err != nil {
			return fmt.Errorf("%s: %w", files[0], err)
		}
		if f.Root["logical_count"] != nil {
			r.Format = torchStatFormat
			return readTorchStat(f, nil, r)
		}
	}
	r.Ranks = len(files)
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
	passes, recorded := map[stepKey]*torchPass{}, rankCounts{}
	for rank, path := range byRank {
		if err := addTorchRank(path, rank, passes, recorded); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, pass := range passes {
		r.Experts = max(r.Experts, mapped(pass.logical))
	}
	if err := bounded(r.Experts, r.Ranks); err != nil {
		return err
	}
	r.warnAboutIncomplete(recorded)
	for key, pass := range passes {
		if recorded[key] != r.Ranks {
			continue
		}
		if err := r.addPhysical(stepKey{key.iteration, key.layer, pass.phase}, pass.copies, pass.logical); err != nil {
			return err
		}
	}
	return nil
}

// torchPass is one layer of one pass, summed over the ranks that recorded it.
type torchPass struct {
	copies  []int64 // slots per physical copy
	logical []int32 // the expert of each copy
	phase   Phase
}

// forwardModes are SGLang's, in dumps per token. An idle rank (4) has no tokens.
var forwardModes = map[int64]Phase{1: Prefill, 2: Decode, 3: Mixed}

// run says which mode one rank ran the pass in.
func (t *torchPass) run(mode int64) {
	switch phase := forwardModes[mode]; {
	case phase == "" || phase == t.phase:
	case t.phase == "":
		t.phase = phase
	default:
		t.phase = Mixed
	}
}

func openRecorder(path string) (*tensor.Torch, error) {
	content, err := input.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	return tensor.OpenTorch(archive.File)
}

// addTorchRank adds the passes of one rank's dump.
func addTorchRank(path string, rank int, passes map[stepKey]*torchPass, recorded rankCounts) error {
	f, err := openRecorder(path)
	if err != nil {
		return err
	}
	records, ok := f.Root.List("records")
	if !ok {
		return errors.New("want a list of records: this is no dump of passes")
	}
	p2l, err := matrix(f, f.Root, "last_physical_to_logical_map")
	if err != nil {
		return err
	}
	for i, v := range records {
		record, ok := v.(tensor.Dict)
		if !ok {
			return fmt.Errorf("record %d is no dictionary", i)
		}
		pass, ok := record["forward_pass_id"].(int64)
		if !ok {
			return fmt.Errorf("record %d has no forward_pass_id", i)
		}
		load, err := matrix(f, record, "global_physical_count")
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if !slices.Equal(load.Shape, p2l.Shape) {
			return fmt.Errorf("record %d: counts of %v, but a map of %v", i, load.Shape, p2l.Shape)
		}
		for layer := range int(load.Shape[0]) {
			key := stepKey{iteration: pass, layer: layer}
			recorded.add(key, rank)
			if passes[key] == nil {
				passes[key] = &torchPass{}
			}
			mode, _ := record["forward_mode"].(int64)
			passes[key].run(mode)
			if err := passes[key].add(load.Row(layer).Values, p2l.Row(layer).Values); err != nil {
				return fmt.Errorf("record %d, layer %d: %w", i, layer, err)
			}
		}
	}
	return nil
}

// add adds one rank's counts per copy; all ranks must have the same map.
func (t *torchPass) add(counts, logical []int64) error {
	if t.copies == nil {
		t.copies = make([]int64, len(counts))
		for _, e := range logical {
			if e < 0 || e >= maxExperts {
				return fmt.Errorf("the map names expert %d", e)
			}
			t.logical = append(t.logical, int32(e))
		}
	}
	if len(counts) != len(t.copies) {
		return fmt.Errorf("%d copies, other ranks have %d", len(counts), len(t.copies))
	}
	if err := checkCounts(counts); err != nil {
		return fmt.Errorf("copy %w", err)
	}
	for i, n := range counts {
		if logical[i] != int64(t.logical[i]) {
			return fmt.Errorf("copy %d is of expert %d, for other ranks of %d", i, logical[i], t.logical[i])
		}
		t.copies[i] += n
	}
	return nil
}

// matrix reads a tensor of [layers, copies].
func matrix(f *tensor.Torch, d tensor.Dict, key string) (tensor.Array, error) {
	a, err := f.Array(d, key)
	if err == nil && (len(a.Shape) != 2 || a.Shape[0] < 1 || a.Shape[0] > maxLayers || a.Shape[1] > maxExperts) {
		err = fmt.Errorf("%s: want [layers, copies], have %v", key, a.Shape)
	}
	return a, err
}
