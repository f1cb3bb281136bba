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
	"sync/atomic"
	"time"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// tensorrtIndex says where in the rank files each step is. A recording can be
// larger than the memory, so its counts are read one step at a time, and anew by
// everyone who walks over them.
type tensorrtIndex struct {
	experts int
	keys    []stepKey // of the steps of every rank, in order
	ranks   []tensorrtRank
	// sameTokens is that all ranks recorded the same slots; differ is in how many steps
	// they did not. Walks may run at the same time: each stores what it counted.
	sameTokens bool
	differ     atomic.Int64
}

type tensorrtRank struct {
	path    string
	size    int64
	written time.Time
	counts  []countsAt // by step; ranks whose files are laid out alike share it
}

// countsAt is where the counts of one step begin, from the start of the file.
type countsAt struct {
	offset int64
	dtype  safetensors.DType
}

// indexTensorRT reads the headers of the files, one per rank in order. Every
// file must cover the same iterations and layers.
func indexTensorRT(dir string, files []string, experts int) (*tensorrtIndex, error) {
	x := &tensorrtIndex{experts: experts}
	known := map[stepKey]int{} // the place of each step in the order
	for rank, name := range files {
		if err := x.addRank(filepath.Join(dir, name), rank, known); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *tensorrtIndex) addRank(path string, rank int, known map[stepKey]int) (err error) {
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
	keys := make([]stepKey, len(tensors))
	for i, t := range tensors {
		if keys[i], err = x.keyOf(t); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if rank == 0 {
		x.keys = slices.SortedFunc(slices.Values(keys), stepKey.compare)
		for i, key := range x.keys {
			known[key] = i
		}
	} else if len(tensors) != len(x.keys) {
		return fmt.Errorf("%s holds %d iterations × layers, rank 0 holds %d: was the run cut short?", name,
			len(tensors), len(x.keys))
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

// keyOf is the step of a tensor, from its name of iteration and layer.
func (x *tensorrtIndex) keyOf(t safetensors.Tensor) (stepKey, error) {
	first, second, _ := strings.Cut(t.Name, "_")
	iteration, err := strconv.ParseUint(first, 10, 62) // takes digits only
	layer, also := strconv.ParseUint(second, 10, 14)   // below maxLayers
	if err != nil || also != nil {
		return stepKey{}, fmt.Errorf("want tensors named iteration_layer, have %q", t.Name)
	}
	if len(t.Shape) != 1 || t.Shape[0] != int64(x.experts) {
		return stepKey{}, fmt.Errorf("tensor %v: want %d experts, as %s says", t, x.experts, tensorrtMeta)
	}
	return stepKey{iteration: int64(iteration), layer: int(layer)}, nil
}

// steps yields each step with what every rank sent. They share their memory.
func (x *tensorrtIndex) steps() iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		ranks, err := x.open()
		defer func() {
			for _, r := range ranks {
				r.f.Close() // only read from
			}
		}()
		if err != nil {
			yield(Step{}, err)
			return
		}
		sent := make([]router.Load, len(ranks))
		for rank := range ranks {
			sent[rank] = router.NewLoad(x.experts)
		}
		step := Step{Load: router.NewLoad(x.experts), Sent: sent}
		if x.sameTokens {
			step.Sent = nil
		}
		differ := int64(0)
		for i, key := range x.keys {
			step.Iteration, step.Layer = key.iteration, key.layer
			clear(step.Load.PerExpert)
			for rank, r := range ranks {
				if err := r.read(i, sent[rank].PerExpert); err != nil {
					yield(Step{}, fmt.Errorf("%s: %v: %w", filepath.Base(r.f.Name()), key, err))
					return
				}
				if rank == 0 || !x.sameTokens {
					step.Load.Merge(sent[rank])
				}
			}
			if x.sameTokens && slices.ContainsFunc(sent,
				func(l router.Load) bool { return !slices.Equal(l.PerExpert, sent[0].PerExpert) }) {
				differ++
			}
			if !yield(step, nil) {
				return
			}
		}
		x.differ.Store(differ)
	}
}

// open opens all files, which must still be those whose headers were read. It
// returns what it opened even with an error.
func (x *tensorrtIndex) open() (readers []*rankReader, err error) {
	for _, r := range x.ranks {
		f, err := os.Open(r.path)
		if err != nil {
			return readers, err
		}
		readers = append(readers, &rankReader{r.counts, f, make([]byte, 8*x.experts)}) // at most 64-bit integers
		info, err := f.Stat()
		if err != nil {
			return readers, err
		}
		if info.Size() != r.size || !info.ModTime().Equal(r.written) {
			return readers, fmt.Errorf("%q has changed since its header was read", r.path)
		}
	}
	return readers, nil
}

// rankReader reads one rank's counts, step after step.
type rankReader struct {
	counts []countsAt
	f      *os.File
	buffer []byte // for the counts of a step
}

// read reads the counts of one step.
func (r *rankReader) read(step int, sent []int64) error {
	at := r.counts[step]
	raw := r.buffer[:int64(len(sent))*at.dtype.Size()]
	if _, err := r.f.ReadAt(raw, at.offset); err != nil {
		return err
	}
	if err := safetensors.DecodeIntegers(sent, raw, at.dtype); err != nil {
		return err
	}
	if err := checkCounts(sent); err != nil {
		return fmt.Errorf("expert %w", err)
	}
	return nil
}
