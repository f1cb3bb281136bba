package counts

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
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

// InFolder reports a file that Read takes with the others of its folder, by its name.
func InFolder(path string) bool {
	names := []*regexp.Regexp{tensorrtInfo, tensorrtCounts, torchRecord, hookProof}
	return slices.ContainsFunc(names, func(name *regexp.Regexp) bool { return name.MatchString(filepath.Base(path)) })
}

// readFolder reads what the ranks wrote to a folder.
func (c *collector) readFolder(d *document) {
	torch := d.named(torchRecord)
	switch {
	case len(d.named(tensorrtInfo)) > 0:
		c.readTensorRT(d)
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
	case len(d.named(hookProof)) > 0:
		proof := d.proof()
		why := append(listOf(part(proof, "hidden")), "it writes them once the engine has been idle for two seconds, or "+
			"ends by itself, so the engine was ended before")[0]
		steps, _ := number(part(proof, "steps"))
		fail("the hook recorded no counts in %d steps: %s", steps, why)
	default:
		if found := d.within(); len(found) > 0 {
			fail("no expert counts in this folder itself: give one within it, such as %s", strings.Join(found, " or "))
		}
		fail("no expert counts in this folder: want meta_info.json with rank0.safetensors, … (TensorRT-LLM) or " +
			"expert_distribution_recorder_*.pt (SGLang); name files of other formats one by one, as in DIR/*.json")
	}
}

// proof is what the hook says of the first rank whose proof is here; nil where there is none, or none can be read.
func (d *document) proof() (proof any) {
	if proofs := d.named(hookProof); len(proofs) > 0 {
		_ = attempt(func() { proof = openDocument(proofs[0]).root })
	}
	return proof
}

// within names folders of counts below this one, the first of each arm that the hook's proof tells: a campaign's
// launches, and the sequences of a launch that switches, such as counts/sequence1 (normal).
func (d *document) within() (found []string) {
	arms, root := map[string]bool{}, os.DirFS(d.path)
	for _, depth := range []string{"*/", "*/*/", "*/*/*/"} {
		for _, name := range must(fs.Glob(root, depth+"meta_info.json")) {
			path := filepath.Join(d.path, filepath.Dir(name))
			if arm := word(part(openDocument(path).proof(), "arm")); !arms[arm] {
				arms[arm], found = true, append(found, strings.TrimSuffix(fmt.Sprintf("%s (%s)", path, arm), " ()"))
			}
		}
	}
	return found
}

// ofRanks reads a file of each rank, from 0 on, which all record the same steps. The name of a file ends in its rank.
func (c *collector) ofRanks(files []string, rank *regexp.Regexp, read func(*document)) {
	paths := make([]string, len(files))
	for _, path := range files {
		m := rank.FindStringSubmatch(filepath.Base(path))
		if m == nil {
			fail("%s: want one dump per rank, ending in _0.pt, _1.pt, …, or a single stat dump", path)
		}
		if n, _ := strconv.Atoi(m[1]); n < len(paths) {
			paths[n] = path
		}
	}
	if lacks := slices.Index(paths, ""); lacks >= 0 {
		fail("want one file of each rank from 0 on, have %s and none of rank %d: is it missing, or are there several "+
			"recordings?", quantity.Count(len(files), "file"), lacks)
	}
	c.sources = len(files)
	c.onRanks(int64(c.sources))
	for c.source = range files {
		within(filepath.Base(paths[c.source]), func() { read(openDocument(paths[c.source])) })
	}
}

// stepLayer names a tensor of TensorRT-LLM's statistics: 100_3 is of iteration 100, layer 3.
var stepLayer = regexp.MustCompile(`^(\d{1,18})_(\d{1,5})$`)

// readTensorRT reads a folder of rank{r}.safetensors. Each holds tensors of slots that that rank's own tokens chose, so
// the load is the sum over the files, and the number of files is the EP size. 'moebalance hook' writes this form in any
// engine, with a proof of its own; with tep all its files hold the same slots.
func (c *collector) readTensorRT(d *document) {
	c.Engine, c.ofAll = placement.TensorRT, true
	meta, of := openDocument(d.named(tensorrtInfo)[0]), nothing()
	each(meta.root, of.describe)
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
	if len(d.named(hookProof)) > 0 {
		c.Engine = word(part(d.proof(), "engine"))
	}
	read := files
	if word(part(meta.root, "mode")) == string(router.TEP) {
		read = files[:1]
	}
	c.ofRanks(read, tensorrtCounts, func(file *document) {
		each(file.root, func(key string, v any) {
			m := stepLayer.FindStringSubmatch(key)
			if m == nil {
				fail("want tensors named iteration_layer, have %q", key)
			}
			of.numbers[isStep], of.numbers[isLayer] = must(number(m[1])), must(number(m[2]))
			c.array(arrayOf(v), Axes{"experts"}, of)
		})
	})
	c.Format, c.Ranks = "TensorRT-LLM expert statistics", len(files)
	for _, s := range c.cells { // more uneven than the rows of a balanced plan
		if !c.unlike && len(read) > 1 && slices.Max(s.Load.PerExpert) > slices.Min(s.Load.PerExpert)+int64(len(read)) {
			c.warn("same_sources", "ranks", len(read))
			break
		}
	}
}
