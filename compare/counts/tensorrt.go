package counts

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// The names in a TensorRT-LLM expert-statistics folder, as
// tensorrt_llm/_torch/moe/expert_statistic.py writes them. Some versions put
// files of other meaning beside the counts, such as rank0_raw.safetensors, which are not read.
const tensorrtMeta = "meta_info.json"

var (
	tensorrtInfoFile = regexp.MustCompile(`^meta_info\.json$`)
	tensorrtCounts   = regexp.MustCompile(`^rank(\d{1,5})\.safetensors$`)
)

type tensorrtInfo struct {
	Experts int `json:"num_experts"`
	TopK    int `json:"num_experts_per_token"`
	Ranks   int `json:"ep_size"` // only some versions
	// Mode is what 'moebalance hook' adds: in tep mode the files of all ranks hold the
	// same slots, which count once.
	Mode string `json:"mode"`
}

func readTensorRTInfo(path string) (info tensorrtInfo, err error) {
	text, err := input.ReadFile(path, maxFile)
	if err != nil {
		return info, err
	}
	err = json.Unmarshal(text, &info)
	switch {
	case err != nil:
	case strings.TrimSpace(string(text)) == "null":
		err = errors.New("want num_experts, have null: rank 0 routed no token in EXPERT_STATISTIC_ITER_RANGE; record again " +
			"while it does")
	case info.Experts < 1 || info.Experts > maxExperts || info.TopK < 1 || info.TopK > info.Experts || info.Ranks < 0:
		err = fmt.Errorf("want num_experts between 1 and %d and num_experts_per_token between 1 and num_experts, have %d "+
			"and %d", maxExperts, info.Experts, info.TopK)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", tensorrtMeta, err)
	}
	return info, err
}

// readTensorRT reads a folder of rank{r}.safetensors. Each holds tensors
// "{iteration}_{layer}" of slots that rank's own tokens chose, so the load is
// the sum over the files, and the number of files is the EP size.
func readTensorRT(d *document, c *collector) error {
	info, err := readTensorRTInfo(filepath.Join(d.path, tensorrtMeta))
	if err != nil {
		return err
	}
	paths, err := byRank(d.named(tensorrtCounts), tensorrtCounts)
	switch {
	case err != nil:
		return err
	case len(paths) == 0:
		return fmt.Errorf("want rank0.safetensors, rank1.safetensors, … beside %s, have none; statistics are saved only when "+
			"the iteration counter reaches the end of EXPERT_STATISTIC_ITER_RANGE", tensorrtMeta)
	case info.Ranks > 0 && info.Ranks != len(paths):
		return fmt.Errorf("%s says ep_size %d, the folder holds %s", tensorrtMeta, info.Ranks,
			quantity.Count(len(paths), "rank file"))
	}
	c.Experts, c.TopK, c.Ranks = info.Experts, info.TopK, len(paths)
	s := &tensorrtSteps{paths: paths, experts: info.Experts, same: info.Mode == string(router.TEP)}
	for _, path := range paths {
		if err := s.index(path); err != nil {
			return err
		}
	}
	r := c.Record
	r.ofAll, r.stream, r.review = true, s.steps(), func() { s.review(r) }
	return nil
}

// tensorrtSteps is where the counts of each step are. A recording can be larger than the memory, so that
// its steps are read one at a time, and again by every walk; of its headers, the places stay.
type tensorrtSteps struct {
	paths   []string
	experts int
	same    bool // the ranks hold the same tokens, of which one rank's count
	keys    []stepKey
	places  [][]place // by rank, in the order of keys
	types   []safetensors.DType

	unlike atomic.Int64 // steps that ranks recorded differently; walks may run at the same time
	uneven atomic.Bool  // whether rank 0 sent unequal counts: equal ones are of a balanced plan
}

// place is where a tensor is in its file, and which of the types it has.
type place struct {
	offset int64
	dtype  int8
}

// index finds the steps in the next rank's file, which must be the steps of rank 0.
func (s *tensorrtSteps) index(path string) (err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // only read from
	name := filepath.Base(path)
	type found struct {
		stepKey
		place
	}
	var list []found
	for _, t := range f.Tensors() {
		key, err := s.keyOf(t)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		dtype := slices.Index(s.types, t.DType)
		if dtype < 0 {
			dtype, s.types = len(s.types), append(s.types, t.DType)
		}
		list = append(list, found{key, place{f.Offset(t), int8(dtype)}})
	}
	slices.SortFunc(list, func(a, b found) int { return a.compare(b.stepKey) })
	first, places := s.places == nil, make([]place, len(list))
	for i, at := range list {
		if first {
			s.keys = append(s.keys, at.stepKey)
		}
		switch {
		case i > 0 && at.stepKey == list[i-1].stepKey:
			return fmt.Errorf("%s: %v is recorded twice", name, at.stepKey)
		case i >= len(s.keys) || at.stepKey != s.keys[i]:
			return fmt.Errorf("%s: unlike rank 0 it holds %v, or lacks a step before: was the run cut short?", name, at.stepKey)
		}
		places[i] = at.place
	}
	if s.keys, s.places = slices.Clip(s.keys), append(s.places, places); len(places) < len(s.keys) {
		return fmt.Errorf("%s holds %d iterations × layers, rank 0 holds %d: was the run cut short?", name, len(places),
			len(s.keys))
	}
	return nil
}

// keyOf is the step of a tensor, from its name of iteration and layer: "100_3" → iteration
// 100, layer 3.
func (s *tensorrtSteps) keyOf(t safetensors.Tensor) (stepKey, error) {
	first, second, _ := strings.Cut(t.Name, "_")
	iteration, err := strconv.ParseUint(first, 10, 62) // takes digits only
	layer, also := strconv.ParseUint(second, 10, 14)   // below maxLayers
	if err != nil || also != nil {
		return stepKey{}, fmt.Errorf("want tensors named iteration_layer, have %q", t.Name)
	}
	if len(t.Shape) != 1 || t.Shape[0] != int64(s.experts) {
		return stepKey{}, fmt.Errorf("tensor %v: want %d experts, as %s says", t, s.experts, tensorrtMeta)
	}
	return stepKey{iteration: int64(iteration), layer: int(layer)}, nil
}

// steps yields the sum over ranks of each step. Every walk reads the files anew.
func (s *tensorrtSteps) steps() iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		var files []*os.File
		defer func() {
			for _, f := range files {
				_ = f.Close() // only read from
			}
		}()
		for _, path := range s.paths {
			f, _, err := safetensors.OpenRegular(path)
			if err != nil {
				yield(Step{}, err)
				return
			}
			files = append(files, f)
		}
		step, sent, raw := Step{Load: router.NewLoad(s.experts)}, router.NewLoad(s.experts), make([]byte, 8*s.experts)
		first, unlike, uneven := make([]int64, s.experts), 0, false // of rank 0
		for i, key := range s.keys {
			step.Iteration, step.Layer = key.iteration, key.layer
			clear(step.Load.PerExpert)
			differs := false
			for rank, f := range files {
				if err := s.read(f, s.places[rank][i], sent.PerExpert, raw); err != nil {
					yield(Step{}, fmt.Errorf("%s: %v: %w", filepath.Base(f.Name()), key, err))
					return
				}
				if rank == 0 {
					copy(first, sent.PerExpert)
					uneven = uneven || slices.Max(first)-slices.Min(first) > 1
				}
				if differs = differs || !slices.Equal(first, sent.PerExpert); rank == 0 || !s.same {
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
		s.unlike.Store(int64(unlike))
		s.uneven.Store(uneven)
	}
}

// read reads the counts of one step on one rank.
func (s *tensorrtSteps) read(f *os.File, at place, sent []int64, raw []byte) error {
	dtype := s.types[at.dtype]
	size := dtype.Size() * int64(s.experts)
	if size > int64(len(raw)) {
		return fmt.Errorf("want integers, have %s", dtype)
	}
	if _, err := f.ReadAt(raw[:size], at.offset); err != nil {
		return err
	}
	if err := safetensors.DecodeIntegers(sent, raw[:size], dtype); err != nil {
		return err
	}
	if err := checkCounts(sent); err != nil {
		return fmt.Errorf("expert %w", err)
	}
	return nil
}

// review warns about what all steps show.
func (s *tensorrtSteps) review(r *Record) {
	if iterations := r.Iterations(); len(iterations) > 1 {
		if first, last := iterations[0], iterations[len(iterations)-1]; last-first >= int64(len(iterations)) {
			r.warn("missing_iterations", "first", first, "last", last, "recorded", len(iterations), "all", last-first+1)
		}
	}
	switch n := s.unlike.Load(); {
	case s.same && n > 0:
		r.warn("ranks_disagree", "file", tensorrtMeta, "cases", n)
	case !s.same && n == 0 && r.Ranks > 1 && s.uneven.Load():
		r.warn("same_sources", "ranks", r.Ranks)
	}
}
