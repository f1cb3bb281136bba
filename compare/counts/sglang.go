package counts

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// The dumps of SGLang's expert distribution recorder.
const (
	torchStatFormat = "SGLang expert distribution, stat"
	torchPassFormat = "SGLang expert distribution, per pass"
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
		if slices.Max(append(pass.values, 0)) == 0 && slices.Min(append(pass.values, 0)) == 0 {
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
		r.warn("empty_steps", "left out %d of %d steps without any count: the recorder's buffer was not full", empty, a.shape[0])
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
	passes := map[cellKey][]int64{}
	logical := map[cellKey][]int32{}
	seen := make([]bool, len(files))
	for _, path := range files {
		m := torchRank.FindStringSubmatch(path)
		if m == nil {
			return nil, fmt.Errorf("%s: want one dump per rank, ending in _0.pt, _1.pt, …, or a single stat dump", path)
		}
		rank, _ := strconv.Atoi(m[1]) // five digits at most
		if rank >= len(files) || seen[rank] {
			return nil, fmt.Errorf("%s: want one dump of each rank from 0 to %d; are there several recordings in the folder?", path, len(files)-1)
		}
		seen[rank] = true
		if err := addTorchRank(path, passes, logical); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, row := range logical {
		r.Experts = max(r.Experts, int(slices.Max(append(slices.Clone(row), -1)))+1)
	}
	if err := bounded(r.Experts, r.Ranks); err != nil {
		return nil, err
	}
	for key, copies := range passes {
		if err := r.addPhysical(key.iteration, key.layer, copies, logical[key]); err != nil {
			return nil, err
		}
	}
	return r.finish()
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

// addTorchRank adds one rank's passes to the counts per physical copy.
func addTorchRank(path string, passes map[cellKey][]int64, logical map[cellKey][]int32) error {
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
		record, _ := v.(*pickleDict)
		if record == nil {
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
		if load.shape[0] != p2l.shape[0] || load.shape[1] != p2l.shape[1] {
			return fmt.Errorf("record %d: counts of %v, but a map of %v", i, load.shape, p2l.shape)
		}
		for layer := range int(load.shape[0]) {
			key, row := cellKey{pass, layer}, load.row(layer).values
			if passes[key] == nil {
				passes[key] = make([]int64, len(row))
				for _, e := range p2l.row(layer).values {
					if e < 0 || e >= maxExperts {
						return fmt.Errorf("the map of layer %d names expert %d", layer, e)
					}
					logical[key] = append(logical[key], int32(e))
				}
			}
			if len(passes[key]) != len(row) {
				return fmt.Errorf("record %d: %d copies, other ranks have %d", i, len(row), len(passes[key]))
			}
			if err := checkCounts(row); err != nil {
				return fmt.Errorf("record %d, layer %d: copy %w", i, layer, err)
			}
			for copied, n := range row {
				passes[key][copied] += n
			}
		}
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
