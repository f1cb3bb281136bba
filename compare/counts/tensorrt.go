package counts

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

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

// readTensorRT reads a folder of rank{r}.safetensors. Each holds tensors
// "{iteration}_{layer}" of slots that rank's own tokens chose, so the load is
// the sum over the files, and the number of files is the EP size.
func readTensorRT(d *document, r *Record) error {
	meta, err := readTensorRTMeta(filepath.Join(d.path, tensorrtMeta))
	if err != nil {
		return err
	}
	r.Experts, r.TopK = meta.Experts, meta.TopK
	files, err := d.tensorrtFiles()
	if err != nil {
		return err
	}
	r.Ranks = len(files)
	if meta.Ranks > 0 && meta.Ranks != r.Ranks {
		return fmt.Errorf("%s says ep_size %d, the folder holds %s", tensorrtMeta, meta.Ranks,
			quantity.Count(r.Ranks, "rank file"))
	}
	paths := make([]string, len(files))
	for rank, name := range files {
		paths[rank] = filepath.Join(d.path, name)
	}
	same := meta.Mode == string(router.TEP)
	var unlike atomic.Int64 // steps that ranks recorded differently; walks may run at the same time
	var uneven atomic.Bool  // whether rank 0 sent unequal counts: equal ones are of a balanced plan
	r.stream = tensorrtSteps(paths, r.Experts, same, func(steps int, unequal bool) {
		unlike.Store(int64(steps))
		uneven.Store(unequal)
	})
	r.review = func() {
		if iterations := r.Iterations(); len(iterations) > 1 {
			if first, last := iterations[0], iterations[len(iterations)-1]; last-first >= int64(len(iterations)) {
				r.warn("missing_iterations", "first", first, "last", last, "recorded", len(iterations), "all", last-first+1)
			}
		}
		switch n := int(unlike.Load()); {
		case same && n > 0:
			r.warn("ranks_disagree", "file", tensorrtMeta, "cases", n)
		case !same && n == 0 && r.Ranks > 1 && uneven.Load():
			r.warn("same_sources", "ranks", r.Ranks)
		}
	}
	return nil
}

type tensorrtMetaInfo struct {
	Experts int `json:"num_experts"`
	TopK    int `json:"num_experts_per_token"`
	Ranks   int `json:"ep_size"` // only some versions
	// Mode is what 'moebalance hook' adds: in tep mode the files of all ranks hold the
	// same slots, which count once.
	Mode string `json:"mode"`
}

func readTensorRTMeta(path string) (info tensorrtMetaInfo, err error) {
	text, err := input.ReadFile(path, maxFile)
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return info, fmt.Errorf("%s: %w", tensorrtMeta, err)
	}
	if strings.TrimSpace(string(text)) == "null" {
		return info, fmt.Errorf("%s: want num_experts, have null: rank 0 routed no token in EXPERT_STATISTIC_ITER_RANGE; "+
			"record again while it does", tensorrtMeta)
	}
	if info.Experts < 1 || info.Experts > maxExperts || info.TopK < 1 || info.TopK > info.Experts || info.Ranks < 0 {
		return info, fmt.Errorf(
			"%s: want num_experts between 1 and %d and num_experts_per_token between 1 and num_experts, have %d and %d",
			tensorrtMeta, maxExperts, info.Experts, info.TopK)
	}
	return info, nil
}

// tensorrtFiles lists the count files in rank order, without a gap.
func (d *document) tensorrtFiles() ([]string, error) {
	byRank := map[int]string{}
	for _, path := range d.named(tensorrtCounts) {
		name := filepath.Base(path)
		rank, _ := strconv.Atoi(tensorrtCounts.FindStringSubmatch(name)[1]) // five digits at most
		if byRank[rank] != "" {
			return nil, fmt.Errorf("%s and %s are both the file of rank %d", byRank[rank], name, rank)
		}
		byRank[rank] = name
	}
	if len(byRank) == 0 {
		return nil, fmt.Errorf(
			"want rank0.safetensors, rank1.safetensors, … beside %s, have none; statistics are saved only when the iteration "+
				"counter reaches the end of EXPERT_STATISTIC_ITER_RANGE", tensorrtMeta)
	}
	files := make([]string, len(byRank))
	for rank := range files {
		if files[rank] = byRank[rank]; files[rank] == "" {
			return nil, fmt.Errorf("%s, but none of rank %d: every source rank's counts are part of the load",
				quantity.Count(len(byRank), "rank file"), rank)
		}
	}
	return files, nil
}
