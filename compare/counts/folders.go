package counts

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	hookProof      = regexp.MustCompile(`^moebalance-hook\.rank\d+\.json$`) // which the hook writes in any case
)

// Files lists the files of a folder that Read may read there.
func Files(dir string) (files []string) {
	_ = attempt(func() { // a folder that cannot be read has none
		d := openDocument(dir)
		files = slices.Concat(d.named(tensorrtInfo), d.named(tensorrtCounts), d.named(torchRecord))
	})
	return files
}

// readFolder reads what the ranks wrote to a folder.
func (c *collector) readFolder(d *document) {
	torch, proofs := d.named(torchRecord), d.named(hookProof)
	switch {
	case len(d.named(tensorrtInfo)) > 0:
		c.readTensorRT(d, proofs)
	case len(torch) > 0:
		if c.Format = passFormat; len(torch) == 1 {
			if stat := openDocument(torch[0]); part(stat.root, "logical_count") != nil {
				c.records(stat)
				return
			}
		}
		c.ofRanks(torch, torchRank, func(dump *document) {
			if part(dump.root, "records") == nil {
				fail("want a list of records: this is no dump of passes")
			}
			c.records(dump)
		})
	case len(proofs) > 0:
		unrecorded(proofs[0])
	default:
		fail("no expert counts in this folder: want meta_info.json with rank0.safetensors, … (TensorRT-LLM) or " +
			"expert_distribution_recorder_*.pt (SGLang); name files of other formats one by one, as in DIR/*.json")
	}
}

// ofRanks reads a file of each rank, from 0 on, which all record the same steps. The name of a file ends in its rank.
func (c *collector) ofRanks(files []string, rank *regexp.Regexp, read func(*document)) {
	paths := make([]string, len(files))
	for _, path := range files {
		m := rank.FindStringSubmatch(filepath.Base(path))
		if m == nil {
			fail("%s: want one dump per rank, ending in _0.pt, _1.pt, …, or a single stat dump", path)
		}
		n, _ := strconv.Atoi(m[1]) // five digits at most
		if n >= len(files) || paths[n] != "" {
			fail("%s: want one file of each rank from 0 to %d: are there several recordings?", path, len(files)-1)
		}
		paths[n] = path
	}
	c.sources = len(paths)
	c.onRanks(int64(len(paths)))
	for source, path := range paths {
		c.source = source
		within(filepath.Base(path), func() { read(openDocument(path)) })
	}
}

// stepLayer names a tensor of TensorRT-LLM's statistics: 100_3 is of iteration 100, layer 3.
var stepLayer = regexp.MustCompile(`^(\d{1,18})_(\d{1,5})$`)

// readTensorRT reads a folder of rank{r}.safetensors. Each holds tensors of slots that that rank's own tokens chose, so
// the load is the sum over the files, and the number of files is the EP size. 'moebalance hook' writes this form in any
// engine; with tep all its files hold the same slots.
func (c *collector) readTensorRT(d *document, proofs []string) {
	c.Engine, c.ofAll = TensorRT, true
	meta, of := openDocument(d.named(tensorrtInfo)[0]), nothing()
	each(meta.root, func(key string, v any) { of.describe(plain(key), v) })
	files, experts, topK, ranks := d.named(tensorrtCounts), of.numbers[isKnown], of.numbers[isTopK], of.numbers[isRanks]
	switch {
	case strings.TrimSpace(string(meta.text)) == "null":
		fail("meta_info.json: want num_experts, have null: rank 0 routed no token in EXPERT_STATISTIC_ITER_RANGE")
	case experts < 1 || experts > maxExperts || topK < 1 || topK > maxExperts:
		fail("meta_info.json: want a JSON object of num_experts between 1 and %d and num_experts_per_token", maxExperts)
	case len(files) == 0:
		fail("want rank0.safetensors, …, have none: they are saved at the end of EXPERT_STATISTIC_ITER_RANGE")
	case ranks > 0 && ranks != int64(len(files)):
		fail("ep_size %d, but the folder holds %s", ranks, quantity.Count(len(files), "rank file"))
	}
	if c.Experts, c.TopK = int(experts), int(topK); c.Experts%len(files) != 0 {
		c.warn("rank_files", "experts", c.Experts, "ranks", len(files))
	}
	if len(proofs) > 0 {
		c.Engine = "" // where the proof cannot be read
		_ = attempt(func() { c.Engine = word(part(openDocument(proofs[0]).root, "engine")) })
	}
	read := files
	if word(part(meta.root, "mode")) == string(router.TEP) {
		read = files[:1]
	}
	first, same := map[string][]int64{}, len(read) > 1 // all ranks' counts, of which even ones are a balanced plan's
	c.ofRanks(read, tensorrtCounts, func(file *document) {
		each(file.root, func(key string, v any) {
			m := stepLayer.FindStringSubmatch(key)
			if m == nil {
				fail("want tensors named iteration_layer, have %q", key)
			}
			a := arrayOf(v)
			of.numbers[isStep], of.numbers[isLayer] = must(number(m[1])), must(number(m[2]))
			c.array(a, Axes{"experts"}, of)
			if c.source == 0 {
				first[key] = a.Values
			}
			same = same && slices.Equal(first[key], a.Values)
		})
	})
	c.Format, c.Ranks = "TensorRT-LLM expert statistics", len(files)
	if same && slices.ContainsFunc(slices.Collect(maps.Values(first)), func(n []int64) bool {
		return slices.Max(n) > slices.Min(n)+1
	}) {
		c.warn("same_sources", "ranks", len(read))
	}
}

// unrecorded says why a folder of the hook holds no counts: a monolithic kernel chooses the experts
// itself, so that nothing outside it sees them.
func unrecorded(path string) {
	var proof struct {
		Steps  int      `json:"steps"`
		Hidden []string `json:"hidden"` // which kernel hides its choices, and which backend shows them
	}
	_ = json.Unmarshal(must(input.ReadFile(path, 1<<20)), &proof) // of what is no proof nothing is said
	why := append(proof.Hidden, "a monolithic kernel may choose the experts, unseen, as GPT-OSS in MXFP4 on Hopper does; "+
		"record with a backend that shows them, such as moe_backend=marlin")[0]
	fail("the hook recorded no counts in %d steps: %s", proof.Steps, why)
}
