package counts

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// The names in a TensorRT-LLM expert-statistics folder, as
// tensorrt_llm/_torch/moe/expert_statistic.py writes them. Some versions put
// files of other meaning beside the counts, under names that an older glob
// (rank*.safetensors) would sum by mistake.
const tensorrtMeta = "meta_info.json"

var (
	tensorrtInfoFile = regexp.MustCompile(`^meta_info\.json$`)
	tensorrtCounts   = regexp.MustCompile(`^rank(\d{1,5})\.safetensors$`)
	tensorrtOther    = regexp.MustCompile(
		`^(rank\d+_raw|cooccurrence_rank\d+|token_selected_experts_rank\d+)\.safetensors$|^rank\d+_numtokens\.json$`)
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
	files, err := d.tensorrtFiles(r)
	if err != nil {
		return err
	}
	r.Ranks = len(files)
	if meta.Ranks > 0 && meta.Ranks != r.Ranks {
		return fmt.Errorf("%s says ep_size %d, the folder holds %s", tensorrtMeta, meta.Ranks,
			quantity.Count(r.Ranks, "rank file"))
	}
	index, err := indexTensorRT(d.path, files, r.Experts)
	if err != nil {
		return err
	}
	index.sameTokens = meta.Mode == string(router.TEP)
	r.stream = index.steps()
	r.review = func() {
		r.warnAboutGaps()
		r.warnAboutSameSources()
		if differ := int(index.differ.Load()); differ > 0 {
			r.warn("ranks_disagree", "file", tensorrtMeta, "cases", differ)
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
func (d *document) tensorrtFiles(r *Record) ([]string, error) {
	byRank := map[int]string{}
	var other []string
	for _, path := range d.files {
		name := filepath.Base(path)
		switch m := tensorrtCounts.FindStringSubmatch(name); {
		case m != nil:
			rank, _ := strconv.Atoi(m[1]) // five digits at most
			if byRank[rank] != "" {
				return nil, fmt.Errorf("%s and %s are both the file of rank %d", byRank[rank], name, rank)
			}
			byRank[rank] = name
		case tensorrtOther.MatchString(name):
			other = append(other, name)
		}
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
	if len(other) > 0 {
		r.warn("other_statistics", "files", other)
	}
	return files, nil
}

// warnAboutGaps says which iterations are missing and whether every layer has
// all of them.
func (r *Record) warnAboutGaps() {
	iterations, layers := r.Iterations(), r.Layers()
	if n := len(iterations); n > 1 && iterations[n-1]-iterations[0] != int64(n-1) {
		r.warn("missing_iterations", "first", iterations[0], "last", iterations[n-1], "recorded", n, "all",
			iterations[n-1]-iterations[0]+1)
	}
	if want := len(iterations) * len(layers); r.steps != want {
		r.warn("incomplete_grid", "iterations", len(iterations), "layers", len(layers), "expected", want, "recorded",
			r.steps)
	}
}

// warnAboutSameSources says when all ranks sent exactly the same: with
// tensor-parallel attention they hold the same tokens, which are then counted
// once per rank. A balanced plan sends equal counts as well, but even ones;
// those are not suspicious.
func (r *Record) warnAboutSameSources() {
	if r.Ranks > 1 && !r.sources.differ && r.sources.uneven {
		r.warn("same_sources", "ranks", r.Ranks)
	}
}
