package counts

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/router/quantity"
)

// The dumps of SGLang's expert distribution recorder.
const (
	torchStatFormat = "SGLang expert distribution (stat)"
	torchPassFormat = "SGLang expert distribution (per pass)"
)

// readTorch reads one dump: counts over all ranks, or one rank's passes when
// that rank is the only one.
func readTorch(path string, f *torchFile) (*Record, error) {
	root, ok := f.root.(*pickleDict)
	if !ok {
		return nil, fmt.Errorf("want a dictionary, as SGLang's expert distribution recorder writes")
	}
	if root.entries["logical_count"] != nil {
		return readTorchStat(path, f, root)
	}
	if root.entries["records"] != nil {
		return nil, fmt.Errorf("this is one rank's dump of passes, and the load is the sum over the ranks: give the folder that holds all of them")
	}
	return nil, fmt.Errorf("want logical_count or records, as SGLang's expert distribution recorder writes")
}

// readTorchStat reads logical_count [steps, layers, experts], which is summed
// over the ranks already. Its steps are a ring buffer: unordered, with rows of
// zeros where nothing was recorded, which are left out.
func readTorchStat(path string, f *torchFile, root *pickleDict) (*Record, error) {
	a, err := f.array(root, "logical_count")
	if err != nil {
		return nil, err
	}
	if len(a.shape) != 3 || a.shape[0] < 1 || a.shape[1] < 1 || a.shape[1] > maxLayers || bounded(int(a.shape[2]), 0) != nil {
		return nil, fmt.Errorf("logical_count: want [steps, layers, experts], have %v", a.shape)
	}
	r := &Record{Source: path, Format: torchStatFormat}
	empty := 0
	for step := range int(a.shape[0]) {
		pass := a.row(step)
		if !slices.ContainsFunc(pass.values, func(n int64) bool { return n != 0 }) {
			empty++
			continue
		}
		var rows [][]int64
		for layer := range int(a.shape[1]) {
			rows = append(rows, pass.row(layer).values)
		}
		if err := r.addLayers(int64(step), rows); err != nil {
			return nil, err
		}
	}
	if empty > 0 {
		r.warn("empty_steps", "left out %d of %s without any count: the recorder's buffer was not full", empty, quantity.Count(a.shape[0], "step"))
	}
	return r.finish()
}

var torchRank = regexp.MustCompile(`_(\d{1,5})\.pt$`)

// readTorchFolder reads one dump per rank and sums the passes of the same
// number. A single file without rank is a stat dump.
func readTorchFolder(dir string, files []string) (*Record, error) {
	if len(files) == 1 {
		f, root, err := openRecorder(files[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", files[0], err)
		}
		if root.entries["logical_count"] != nil {
			return readTorchStat(files[0], f, root)
		}
	}
	r := &Record{Source: dir, Format: torchPassFormat, Ranks: len(files)}
	byRank := make([]string, len(files))
	for _, path := range files {
		m := torchRank.FindStringSubmatch(path)
		if m == nil {
			return nil, fmt.Errorf("%s: want one dump per rank, ending in _0.pt, _1.pt, …, or a single stat dump", path)
		}
		rank, _ := strconv.Atoi(m[1]) // five digits at most
		if rank >= len(files) || byRank[rank] != "" {
			return nil, fmt.Errorf("%s: want one dump of each rank from 0 to %d; are there several recordings in the folder?", path, len(files)-1)
		}
		byRank[rank] = path
	}
	passes, recorded := map[cellKey]*torchPass{}, tally{}
	for rank, path := range byRank {
		if err := addTorchRank(path, rank, passes, recorded); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, pass := range passes {
		r.Experts = max(r.Experts, mapped(pass.logical))
	}
	if err := bounded(r.Experts, r.Ranks); err != nil {
		return nil, err
	}
	r.warnAboutIncomplete(recorded)
	for key, pass := range passes {
		if recorded[key] != r.Ranks {
			continue
		}
		if err := r.addPhysical(key.iteration, key.layer, pass.copies, pass.logical); err != nil {
			return nil, err
		}
	}
	return r.finish()
}

// torchPass is one layer of one pass, summed over the ranks that recorded it.
type torchPass struct {
	copies  []int64 // slots per physical copy
	logical []int32 // the expert of each copy
}

// openRecorder opens a dump and its outermost dictionary.
func openRecorder(path string) (*torchFile, *pickleDict, error) {
	content, err := readWhole(path)
	if err != nil {
		return nil, nil, err
	}
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, nil, err
	}
	f, err := openTorch(z)
	if err != nil {
		return nil, nil, err
	}
	root, ok := f.root.(*pickleDict)
	if !ok {
		return nil, nil, errors.New("want a dictionary, as SGLang's expert distribution recorder writes")
	}
	return f, root, nil
}

// addTorchRank adds the passes of one rank's dump.
func addTorchRank(path string, rank int, passes map[cellKey]*torchPass, recorded tally) error {
	f, root, err := openRecorder(path)
	if err != nil {
		return err
	}
	records, ok := root.entries["records"].(*[]any)
	if !ok {
		return errors.New("want a list of records: this is no dump of passes")
	}
	p2l, err := f.matrix(root, "last_physical_to_logical_map")
	if err != nil {
		return err
	}
	for i, v := range *records {
		record, ok := v.(*pickleDict)
		if !ok {
			return fmt.Errorf("record %d is no dictionary", i)
		}
		pass, ok := record.entries["forward_pass_id"].(int64)
		if !ok {
			return fmt.Errorf("record %d has no forward_pass_id", i)
		}
		load, err := f.matrix(record, "global_physical_count")
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if !slices.Equal(load.shape, p2l.shape) {
			return fmt.Errorf("record %d: counts of %v, but a map of %v", i, load.shape, p2l.shape)
		}
		for layer := range int(load.shape[0]) {
			key := cellKey{pass, layer}
			recorded.add(key, rank)
			if passes[key] == nil {
				passes[key] = &torchPass{}
			}
			if err := passes[key].add(load.row(layer).values, p2l.row(layer).values); err != nil {
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
func (f *torchFile) matrix(d *pickleDict, key string) (array, error) {
	a, err := f.array(d, key)
	if err == nil && (len(a.shape) != 2 || a.shape[0] < 1 || a.shape[0] > maxLayers || a.shape[1] > maxExperts) {
		err = fmt.Errorf("%s: want [layers, copies], have %v", key, a.shape)
	}
	return a, err
}
