package counts

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	c.Experts, c.TopK, c.Ranks, c.ofAll = info.Experts, info.TopK, len(paths), true
	alike, uneven := len(paths) > 1, false
	for rank, path := range paths {
		same, err := c.addTensorRT(path, rank, info)
		if err != nil {
			return err
		}
		alike = alike && same
	}
	if err := c.complete(len(paths)); err != nil {
		return err
	}
	for _, s := range c.cells { // equal counts of all ranks are of a balanced plan, where they are even
		uneven = uneven || slices.Max(s.Load.PerExpert)-slices.Min(s.Load.PerExpert) > int64(len(paths))
	}
	if alike && uneven && info.Mode != string(router.TEP) {
		c.warn("same_sources", "ranks", len(paths))
	}
	return nil
}

// addTensorRT adds the counts of one rank's file, and reports whether they are those of the ranks before. Where the
// ranks hold the same tokens, rank 0's count.
func (c *collector) addTensorRT(path string, rank int, info tensorrtInfo) (same bool, err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return false, err
	}
	same = true
	defer func() { err = errors.Join(err, f.Close()) }() // only read from
	slots := make([]int64, info.Experts)
	for _, t := range f.Tensors() {
		key, err := tensorrtKey(t, info.Experts)
		if err != nil {
			return false, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		raw, err := f.Bytes(t)
		if err == nil {
			err = safetensors.DecodeIntegers(slots, raw, t.DType)
		}
		if into := c.from(rank, key); err == nil {
			for e, n := range into.Load.PerExpert { // of rank ranks
				same = same && n == slots[e]*int64(rank)
			}
			if rank == 0 || info.Mode != string(router.TEP) {
				err = c.list(into, router.LevelExpert, slots, false)
			}
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return same, nil
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
