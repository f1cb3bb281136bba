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
func Files(dir string) []string {
	d, err := openDocument(dir)
	if err != nil { // a folder that cannot be read has none
		return nil
	}
	return slices.Concat(d.named(tensorrtInfo), d.named(tensorrtCounts), d.named(torchRecord))
}

// readFolder reads what the ranks wrote to a folder.
func (c *collector) readFolder(d *document) error {
	switch torch := d.named(torchRecord); {
	case len(d.named(tensorrtInfo)) > 0:
		return c.readTensorRT(d)
	case len(torch) > 0:
		c.Format = passFormat
		if stat, err := openDocument(torch[0]); err == nil && len(torch) == 1 && part(stat.root, "logical_count") != nil {
			return c.objects(stat)
		}
		return c.ofRanks(torch, torchRank, func(dump *document) error {
			if part(dump.root, "records") == nil {
				return errors.New("want a list of records: this is no dump of passes")
			}
			return c.objects(dump)
		})
	case len(d.named(hookProof)) > 0:
		return unrecorded(d.named(hookProof)[0])
	}
	return errors.New("no expert counts in this folder: want meta_info.json with " +
		"rank0.safetensors, … (TensorRT-LLM) or expert_distribution_recorder_*.pt (SGLang); name files of other formats " +
		"one by one (DIR/*.json); 'moebalance trace' reads traces")
}

// ofRanks reads a file of each rank, from 0 on, which all record the same steps. The name of a file ends in its rank.
func (c *collector) ofRanks(files []string, rank *regexp.Regexp, read func(*document) error) error {
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
	c.sources = len(paths)
	if err := c.onRanks(int64(len(paths))); err != nil {
		return err
	}
	for c.source = range c.sources {
		d, err := openDocument(paths[c.source])
		if err == nil {
			err = read(d)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(paths[c.source]), err)
		}
	}
	return nil
}

// readTensorRT reads a folder of rank{r}.safetensors. Each holds tensors
// "{iteration}_{layer}" of slots that rank's own tokens chose, so the load is
// the sum over the files, and the number of files is the EP size.
func (c *collector) readTensorRT(d *document) error {
	c.Format = "TensorRT-LLM expert statistics"
	files, info := d.named(tensorrtCounts), nothing()
	meta, err := openDocument(d.named(tensorrtInfo)[0])
	if err != nil {
		return fmt.Errorf("meta_info.json: %w", err)
	}
	for _, field := range items(meta.root) {
		_ = info.describe(plain(field.Name), field.Value) // no cell
	}
	experts, topK, ranks := info.numbers[isKnown], info.numbers[isTopK], info.numbers[isRanks]
	switch {
	case strings.TrimSpace(string(meta.text)) == "null":
		err = errors.New("want num_experts, have null: rank 0 routed no token in EXPERT_STATISTIC_ITER_RANGE; record again " +
			"while it does")
	case experts < 1 || experts > maxExperts || topK < 1 || topK > maxExperts:
		err = fmt.Errorf("want a JSON object of num_experts between 1 and %d and num_experts_per_token", maxExperts)
	case len(files) == 0:
		err = errors.New("want rank0.safetensors, rank1.safetensors, … beside it, have none; statistics are saved only " +
			"when the iteration counter reaches the end of EXPERT_STATISTIC_ITER_RANGE")
	case ranks > 0 && ranks != int64(len(files)):
		err = fmt.Errorf("ep_size %d, but the folder holds %s", ranks, quantity.Count(len(files), "rank file"))
	}
	if err != nil {
		return fmt.Errorf("meta_info.json: %w", err)
	}
	c.Experts, c.TopK, c.ofAll, c.Engine = int(experts), int(topK), true, TensorRT
	if proofs := d.named(hookProof); len(proofs) > 0 { // of 'moebalance hook', in any engine
		c.Engine = ""
		if proof, err := openDocument(proofs[0]); err == nil {
			c.Engine = word(part(proof.root, "engine"))
		}
	}
	all := files
	if word(part(meta.root, "mode")) == string(router.TEP) { // of 'moebalance hook': all files hold the same slots
		files = files[:1]
	}
	first, alike := map[string][]int64{}, len(files) > 1
	err = c.ofRanks(files, tensorrtCounts, func(file *document) error {
		return c.readSteps(file, func(name string, slots []int64) {
			if c.source == 0 {
				first[name] = slots
			}
			alike = alike && slices.Equal(first[name], slots)
		})
	})
	c.Ranks = len(all)
	for _, s := range c.cells { // even counts of all ranks are a balanced plan's
		if alike && slices.Max(s.Load.PerExpert)-slices.Min(s.Load.PerExpert) > int64(len(files)) {
			c.warn("same_sources", "ranks", len(files))
			break
		}
	}
	return err
}

// stepLayer is the name of a tensor: "100_3" is iteration 100, layer 3.
var stepLayer = regexp.MustCompile(`^(\d{1,18})_(\d{1,5})$`)

// readSteps reads the tensors of one rank, each of which see gets.
func (c *collector) readSteps(file *document, see func(name string, slots []int64)) error {
	for _, t := range items(file.root) {
		m, of := stepLayer.FindStringSubmatch(t.Name), nothing()
		if m == nil {
			return fmt.Errorf("want tensors named iteration_layer, have %q", t.Name)
		}
		of.numbers[isStep], _ = whole(m[1]) // digits
		of.numbers[isLayer], _ = whole(m[2])
		a, err := arrayOf(t.Value)
		if err == nil {
			err = c.array(a, Axes{"experts"}, of)
		}
		if err != nil {
			return err
		}
		see(t.Name, a.Values)
	}
	return nil
}

// unrecorded says why a folder of the hook holds no counts: a monolithic kernel chooses the experts
// itself, so that nothing outside it sees them.
func unrecorded(path string) error {
	var proof struct {
		Steps  int      `json:"steps"`
		Hidden []string `json:"hidden"` // which kernel hides its choices, and which backend shows them
	}
	text, err := input.ReadFile(path, 1<<20)
	if err != nil {
		return err
	}
	_ = json.Unmarshal(text, &proof) // of what is no proof nothing is said
	why := append(proof.Hidden, "a monolithic expert kernel may choose the experts, unseen (GPT-OSS in MXFP4 on Hopper "+
		"does by default); record with a backend that shows them, such as moe_backend=marlin")[0]
	return fmt.Errorf("the hook recorded no counts in %d steps: %s", proof.Steps, why)
}
