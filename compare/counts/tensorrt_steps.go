package counts

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// tensorrtIndex says where in the rank files each step is. A recording can be
// larger than the memory, so its counts are read one step at a time, and anew by
// everyone who walks over them.
type tensorrtIndex struct {
	experts int
	cells   []cellKey // of every rank, in order
	ranks   []tensorrtRank
}

type tensorrtRank struct {
	path    string
	size    int64
	written time.Time
	counts  []countsAt // by cell; ranks whose files are laid out alike share it
}

// countsAt is where the counts of one cell begin, from the start of the file.
type countsAt struct {
	offset int64
	dtype  safetensors.DType
}

// indexTensorRT reads the headers of the files, one per rank in order. Every
// file must cover the same iterations and layers.
func indexTensorRT(dir string, files []string, experts int) (*tensorrtIndex, error) {
	x := &tensorrtIndex{experts: experts}
	known := map[cellKey]int{} // the place of each cell in the order
	for rank, name := range files {
		if err := x.addRank(filepath.Join(dir, name), rank, known); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *tensorrtIndex) addRank(path string, rank int, known map[cellKey]int) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	name, tensors := filepath.Base(path), f.Tensors()
	keys := make([]cellKey, len(tensors))
	for i, t := range tensors {
		if keys[i], err = x.keyOf(t); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if rank == 0 {
		x.cells = slices.SortedFunc(slices.Values(keys), cellKey.compare)
		for i, key := range x.cells {
			known[key] = i
		}
	} else if len(tensors) != len(x.cells) {
		return fmt.Errorf("%s holds %d iterations × layers, rank 0 holds %d: was the run cut short?", name, len(tensors), len(x.cells))
	}
	counts := make([]countsAt, len(tensors))
	for i, t := range tensors {
		at, ok := known[keys[i]]
		switch {
		case !ok:
			return fmt.Errorf("%s holds %v, which rank 0 lacks", name, keys[i])
		case counts[at] != countsAt{}:
			return fmt.Errorf("%s: %v is recorded twice", name, keys[i])
		}
		counts[at] = countsAt{f.Offset(t), t.DType}
	}
	if rank > 0 && slices.Equal(counts, x.ranks[rank-1].counts) {
		counts = x.ranks[rank-1].counts
	}
	x.ranks = append(x.ranks, tensorrtRank{path, info.Size(), info.ModTime(), counts})
	return nil
}

// keyOf is the cell of a tensor, from its name of iteration and layer.
func (x *tensorrtIndex) keyOf(t safetensors.Tensor) (cellKey, error) {
	first, second, _ := strings.Cut(t.Name, "_")
	iteration, ok := digits(first, 18)
	layer, also := digits(second, 5)
	if !ok || !also {
		return cellKey{}, fmt.Errorf("want tensors named iteration_layer, have %q", t.Name)
	}
	if len(t.Shape) != 1 || t.Shape[0] != int64(x.experts) {
		return cellKey{}, fmt.Errorf("tensor %v: want %d experts, as %s says", t, x.experts, tensorrtMeta)
	}
	return cellKey{iteration, int(layer)}, nil
}

// digits is the number that a text of 1 to most digits, at most 18, names.
func digits(text string, most int) (n int64, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && len(text) <= most
}

// steps yields each step with what every rank sent. They share their memory.
func (x *tensorrtIndex) steps() iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		files, err := x.open()
		defer func() {
			for _, f := range files {
				f.Close() // only read from
			}
		}()
		if err != nil {
			yield(Step{}, err)
			return
		}
		step := Step{Load: router.NewLoad(x.experts), Sent: make([]router.Load, len(files))}
		for rank := range files {
			step.Sent[rank] = router.NewLoad(x.experts)
		}
		var buffer []byte
		for i, key := range x.cells {
			step.Iteration, step.Layer = key.iteration, key.layer
			clear(step.Load.PerExpert)
			for rank, f := range files {
				if buffer, err = x.ranks[rank].read(f, i, step.Sent[rank].PerExpert, buffer); err != nil {
					yield(Step{}, fmt.Errorf("%s: %v: %w", filepath.Base(f.Name()), key, err))
					return
				}
				step.Load.Merge(step.Sent[rank])
			}
			if !yield(step, nil) {
				return
			}
		}
	}
}

// open opens all files, which must still be those whose headers were read. It
// returns what it opened even with an error.
func (x *tensorrtIndex) open() (files []*os.File, err error) {
	for _, r := range x.ranks {
		f, err := os.Open(r.path)
		if err != nil {
			return files, err
		}
		files = append(files, f)
		info, err := f.Stat()
		if err != nil {
			return files, err
		}
		if info.Size() != r.size || !info.ModTime().Equal(r.written) {
			return files, fmt.Errorf("%q has changed since its header was read", r.path)
		}
	}
	return files, nil
}

// read reads the counts of one cell into sent. It returns the buffer it used.
func (r tensorrtRank) read(f *os.File, cell int, sent []int64, buffer []byte) ([]byte, error) {
	at := r.counts[cell]
	raw := slices.Grow(buffer[:0], len(sent)*int(at.dtype.Size()))[:len(sent)*int(at.dtype.Size())]
	if _, err := f.ReadAt(raw, at.offset); err != nil {
		return raw, err
	}
	if err := safetensors.DecodeIntegers(sent, raw, at.dtype); err != nil {
		return raw, err
	}
	if err := checkCounts(sent); err != nil {
		return raw, fmt.Errorf("expert %w", err)
	}
	return raw, nil
}
