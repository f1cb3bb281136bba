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

// The names in folders to which each rank writes a file of its own. TensorRT-LLM's are of
// tensorrt_llm/_torch/moe/expert_statistic.py; some versions put files of other meaning beside the
// counts, such as rank0_raw.safetensors, which are not read.
var (
	tensorrtInfo   = regexp.MustCompile(`^meta_info\.json$`)
	tensorrtCounts = regexp.MustCompile(`^rank(\d{1,5})\.safetensors$`)
	torchRecord    = regexp.MustCompile(`^expert_distribution_recorder_.*\.pt$`)
	torchRank      = regexp.MustCompile(`_(\d{1,5})\.pt$`)
)

// Files lists the files of a folder that Read may read there.
func Files(dir string) []string {
	d, err := openDocument(dir)
	if err != nil { // a folder that cannot be read has none
		return nil
	}
	return slices.Concat(d.named(tensorrtInfo), d.named(tensorrtCounts), d.named(torchRecord))
}

// ofRanks reads a file of each rank, from 0 on, which all record the same steps. The name of a file ends in its rank.
func (c *collector) ofRanks(files []string, rank *regexp.Regexp, read func(path string) error) error {
	paths := make([]string, len(files))
	for _, path := range files {
		m := rank.FindStringSubmatch(filepath.Base(path))
		if m == nil {
			return fmt.Errorf("%s: want one dump per rank, ending in _0.pt, _1.pt, …, or a single stat dump", path)
		}
		n, _ := strconv.Atoi(m[1]) // five digits at most
		if n >= len(files) || paths[n] != "" {
			return fmt.Errorf("%s: want one file of each rank from 0 to %d, for every rank's counts are part of the load; "+
				"are there several recordings in the folder?", path, len(files)-1)
		}
		paths[n] = path
	}
	if c.Ranks, c.sources = len(paths), len(paths); c.Ranks > maxRanks {
		return bounded(0, c.Ranks)
	}
	for n, path := range paths {
		c.source = n
		if err := read(path); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

// readTorch reads one dump per rank and sums the passes of the same number. A single file without rank is a stat dump.
func readTorch(d *document, c *collector) error {
	files := d.named(torchRecord)
	if len(files) == 1 {
		if dump, err := openDocument(files[0]); err == nil && dump.has("logical_count") {
			return readObjects(dump, c)
		}
	}
	return c.ofRanks(files, torchRank, func(path string) error {
		dump, err := openDocument(path)
		if err == nil && !dump.has("records") {
			err = errors.New("want a list of records: this is no dump of passes")
		}
		if err != nil {
			return err
		}
		return readObjects(dump, c)
	})
}

// statistics are what meta_info.json says.
type statistics struct {
	Experts int `json:"num_experts"`
	TopK    int `json:"num_experts_per_token"`
	Ranks   int `json:"ep_size"` // only some versions
	// Mode is what 'moebalance hook' adds: in tep mode the files of all ranks hold the
	// same slots, which count once.
	Mode string `json:"mode"`
}

// readTensorRT reads a folder of rank{r}.safetensors. Each holds tensors
// "{iteration}_{layer}" of slots that rank's own tokens chose, so the load is
// the sum over the files, and the number of files is the EP size.
func readTensorRT(d *document, c *collector) error {
	var info statistics
	files := d.named(tensorrtCounts)
	text, err := input.ReadFile(d.named(tensorrtInfo)[0], maxFile)
	if err == nil && json.Unmarshal(text, &info) != nil {
		err = errors.New("want a JSON object of num_experts and num_experts_per_token")
	}
	switch {
	case err != nil:
	case strings.TrimSpace(string(text)) == "null":
		err = errors.New("want num_experts, have null: rank 0 routed no token in EXPERT_STATISTIC_ITER_RANGE; record again " +
			"while it does")
	case info.Experts < 1 || info.Experts > maxExperts || info.TopK < 1:
		err = fmt.Errorf("want num_experts between 1 and %d and num_experts_per_token, have %d and %d", maxExperts,
			info.Experts, info.TopK)
	case len(files) == 0:
		err = errors.New("want rank0.safetensors, rank1.safetensors, … beside it, have none; statistics are saved only " +
			"when the iteration counter reaches the end of EXPERT_STATISTIC_ITER_RANGE")
	case info.Ranks != 0 && info.Ranks != len(files):
		err = fmt.Errorf("ep_size %d, but the folder holds %s", info.Ranks, quantity.Count(len(files), "rank file"))
	}
	if err != nil {
		return fmt.Errorf("meta_info.json: %w", err)
	}
	c.Experts, c.TopK, c.ofAll = info.Experts, info.TopK, true
	alike := len(files) > 1 && info.Mode != string(router.TEP)
	if err := c.ofRanks(files, tensorrtCounts, func(path string) error {
		same, err := c.rankFile(path, info)
		alike = alike && same
		return err
	}); err != nil {
		return err
	}
	for _, s := range c.cells { // even counts of all ranks are a balanced plan's
		if alike && slices.Max(s.Load.PerExpert)-slices.Min(s.Load.PerExpert) > int64(len(files)) {
			c.warn("same_sources", "ranks", len(files))
			break
		}
	}
	return nil
}

// rankFile adds the counts of one rank's file, and reports whether they are the counts of the ranks before. Where the
// ranks hold the same tokens, rank 0's count.
func (c *collector) rankFile(path string, info statistics) (same bool, err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return false, err
	}
	same = true
	defer func() { err = errors.Join(err, f.Close()) }() // only read from
	c.stepped = true
	slots := make([]int64, c.Experts)
	for _, t := range f.Tensors() {
		first, second, _ := strings.Cut(t.Name, "_") // "100_3" is iteration 100, layer 3
		iteration, err := strconv.ParseUint(first, 10, 62)
		layer, also := strconv.ParseUint(second, 10, 14) // below maxLayers
		switch {
		case err != nil || also != nil:
			return false, fmt.Errorf("want tensors named iteration_layer, have %q", t.Name)
		case len(t.Shape) != 1 || t.Shape[0] != int64(c.Experts):
			return false, fmt.Errorf("tensor %v: want %d experts, as meta_info.json says", t, c.Experts)
		}
		key := stepKey{iteration: int64(iteration), layer: int(layer)}
		raw, err := f.Bytes(t)
		if err == nil {
			err = safetensors.DecodeIntegers(slots, raw, t.DType)
		}
		into := c.into(key)
		for e, n := range into.Load.PerExpert { // of the ranks before
			same = same && n == slots[e]*int64(c.source)
		}
		if err == nil && (c.source == 0 || info.Mode != string(router.TEP)) {
			err = c.add(into, router.LevelExpert, 0, slots, false)
		}
		if err != nil {
			return false, fmt.Errorf("%v: %w", key, err)
		}
	}
	return same, nil
}
