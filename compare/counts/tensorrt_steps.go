package counts

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// tensorrtRank is one rank's file, and where the counts of each step are in it.
type tensorrtRank struct {
	*safetensors.File
	tensors map[stepKey]safetensors.Tensor
}

// openTensorRT opens the files of all ranks, in order, each of which must hold the same steps. It
// returns what it opened even with an error.
func openTensorRT(paths []string, experts int) (ranks []tensorrtRank, err error) {
	for _, path := range paths {
		f, err := safetensors.Open(path)
		if err != nil {
			return ranks, err
		}
		r := tensorrtRank{f, map[stepKey]safetensors.Tensor{}}
		ranks = append(ranks, r)
		for _, t := range f.Tensors() {
			key, err := tensorrtKey(t, experts)
			_, twice := r.tensors[key]
			switch {
			case err != nil:
				return ranks, fmt.Errorf("%s: %w", filepath.Base(path), err)
			case twice:
				return ranks, fmt.Errorf("%s: %v is recorded twice", filepath.Base(path), key)
			}
			r.tensors[key] = t
			if _, ok := ranks[0].tensors[key]; !ok {
				return ranks, fmt.Errorf("%s holds %v, which rank 0 lacks", filepath.Base(path), key)
			}
		}
		if len(r.tensors) != len(ranks[0].tensors) {
			return ranks, fmt.Errorf("%s holds %d iterations × layers, rank 0 holds %d: was the run cut short?",
				filepath.Base(path), len(r.tensors), len(ranks[0].tensors))
		}
	}
	return ranks, nil
}

// tensorrtKey is the step of a tensor, from its name of iteration and layer: "100_3" → iteration
// 100, layer 3.
func tensorrtKey(t safetensors.Tensor, experts int) (stepKey, error) {
	first, second, _ := strings.Cut(t.Name, "_")
	iteration, err := strconv.ParseUint(first, 10, 62) // takes digits only
	layer, also := strconv.ParseUint(second, 10, 14)   // below maxLayers
	if err != nil || also != nil {
		return stepKey{}, fmt.Errorf("want tensors named iteration_layer, have %q", t.Name)
	}
	if len(t.Shape) != 1 || t.Shape[0] != int64(experts) {
		return stepKey{}, fmt.Errorf("tensor %v: want %d experts, as %s says", t, experts, tensorrtMeta)
	}
	return stepKey{iteration: int64(iteration), layer: int(layer)}, nil
}

// tensorrtSteps yields the sum over ranks of each step, one at a time, for a recording can be larger
// than the memory; every walk reads the files anew. Where the ranks hold the same tokens, one counts.
func tensorrtSteps(paths []string, experts int, same bool, differ func(steps int, uneven bool)) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		ranks, err := openTensorRT(paths, experts)
		defer func() {
			for _, r := range ranks {
				err = errors.Join(err, r.Close()) // only read from
			}
		}()
		if err != nil {
			yield(Step{}, err)
			return
		}
		step, sent, raw := Step{Load: router.NewLoad(experts)}, router.NewLoad(experts), make([]byte, 8*experts)
		first := make([]int64, experts) // of rank 0
		unlike, uneven := 0, false
		for _, key := range slices.SortedFunc(maps.Keys(ranks[0].tensors), stepKey.compare) {
			step.Iteration, step.Layer = key.iteration, key.layer
			clear(step.Load.PerExpert)
			differs := false
			for rank, r := range ranks {
				if err := r.read(key, sent.PerExpert, raw); err != nil {
					yield(Step{}, fmt.Errorf("%s: %v: %w", filepath.Base(r.Name()), key, err))
					return
				}
				if rank == 0 {
					first = append(first[:0], sent.PerExpert...)
					uneven = uneven || slices.Max(first)-slices.Min(first) > 1
				}
				if differs = differs || !slices.Equal(first, sent.PerExpert); rank == 0 || !same {
					step.Load.Merge(sent)
				}
			}
			if differs {
				unlike++
			}
			if !yield(step, nil) {
				return
			}
		}
		differ(unlike, uneven)
	}
}

// read reads the counts of one step.
func (r tensorrtRank) read(key stepKey, sent []int64, raw []byte) error {
	t := r.tensors[key]
	raw = raw[:t.Bytes()]
	if _, err := r.ReadAt(raw, r.Offset(t)); err != nil {
		return err
	}
	if err := safetensors.DecodeIntegers(sent, raw, t.DType); err != nil {
		return err
	}
	if err := checkCounts(sent); err != nil {
		return fmt.Errorf("expert %w", err)
	}
	return nil
}
