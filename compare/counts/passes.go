package counts

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

var (
	torchRecord = regexp.MustCompile(`^expert_distribution_recorder_.*\.pt$`)
	torchRank   = regexp.MustCompile(`_(\d{1,5})\.pt$`)
	torchStamp  = regexp.MustCompile(`^expert_distribution_recorder_(\d{9,11}(?:\.\d{1,9})?)(?:_\d{1,5})?\.pt$`)
)

const torchStatFormat = "SGLang expert distribution (stat)"

// torchTime is when a dump was written, as its name says; 0 where it does not.
func torchTime(path string) float64 {
	if m := torchStamp.FindStringSubmatch(filepath.Base(path)); m != nil {
		seconds, _ := strconv.ParseFloat(m[1], 64) // digits only
		return seconds
	}
	return 0
}

// byRank are files in the order of the rank that their names end in, one of each from 0 on.
func byRank(files []string, number *regexp.Regexp) ([]string, error) {
	list := make([]string, len(files))
	for _, path := range files {
		m := number.FindStringSubmatch(filepath.Base(path))
		if m == nil {
			return nil, fmt.Errorf("%s: want one dump per rank, ending in _0.pt, _1.pt, …, or a single stat dump", path)
		}
		rank, _ := strconv.Atoi(m[1]) // five digits at most
		if rank >= len(files) || list[rank] != "" {
			return nil, fmt.Errorf("%s: want one file of each rank from 0 to %d, for every rank's counts are part of the load; "+
				"are there several recordings in the folder?", path, len(files)-1)
		}
		list[rank] = path
	}
	return list, nil
}

// readTorchFolder reads one dump per rank and sums the passes of the same
// number. A single file without rank is a stat dump.
func readTorchFolder(d *document, c *collector) error {
	files := d.named(torchRecord)
	c.Time = torchTime(files[0])
	if len(files) == 1 {
		dump, err := openDocument(files[0])
		if err != nil {
			return fmt.Errorf("%s: %w", files[0], err)
		}
		if dump.has("logical_count") {
			c.Format = torchStatFormat
			return readLogicalCount(dump, c)
		}
	}
	if c.Ranks = len(files); c.Ranks > maxRanks {
		return bounded(0, c.Ranks)
	}
	files, err := byRank(files, torchRank)
	for rank, path := range files {
		var dump *document
		if dump, err = openDocument(path); err == nil {
			err = dump.addPasses(c, rank)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return cmp.Or(err, c.complete(len(files)))
}

// forwardModes are SGLang's, in dumps per token. An idle rank (4) has no tokens.
var forwardModes = map[int64]Phase{1: Prefill, 2: Decode, 3: Mixed}

// addPasses adds the passes in one rank's dump. All ranks must have the same map of copies.
func (d *document) addPasses(c *collector, rank int) error {
	records, ok := d.keys.get("records").item.(*[]any)
	if !ok {
		return errors.New("want a list of records: this is no dump of passes")
	}
	p2l, err := d.keys.get("last_physical_to_logical_map").matrix()
	if err != nil {
		return fmt.Errorf("last_physical_to_logical_map: %w", err)
	}
	for i, item := range *records {
		record := value{item: item, torch: d.first[0].torch}.keys()
		pass, ok := record.get("forward_pass_id").whole()
		if !ok {
			return fmt.Errorf("record %d has no forward_pass_id", i)
		}
		load, err := record.get("global_physical_count").matrix()
		mode, _ := record.get("forward_mode").whole()
		if err == nil {
			err = c.layersOfCopies(stepKey{iteration: pass}, rank, load, p2l, forwardModes[mode])
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	return nil
}

// layersOfCopies adds the slots of each copy in each layer of one step. A step in which ranks worked in
// unlike phases is mixed.
func (c *collector) layersOfCopies(key stepKey, source int, load, p2l tensor.Array, phase Phase) error {
	if len(load.Shape) != 2 || load.Shape[0] != p2l.Shape[0] {
		return fmt.Errorf("%v: counts of %v, but a map of %v", key, load.Shape, p2l.Shape)
	}
	for layer := range int(load.Shape[0]) {
		key.layer = layer
		if err := c.copies(key, source, load.Row(layer).Values, p2l.Row(layer).Values); err != nil {
			return err
		}
		into := c.at(key)
		if into.Phase != "" && phase != "" && into.Phase != phase {
			phase = Mixed
		}
		into.Phase = cmp.Or(phase, into.Phase)
	}
	return nil
}

// loadStatsType is the record_type of a step.
const loadStatsType = "eplb_load_stats"

func isLoadStats(v value) bool { return v.keys().get("record_type").word() == loadStatsType }

// readLoadStats reads load statistics of vLLM's offline EPLB, one step a line: the slots of each
// physical copy. Lines of another type are about the model. Steps of several models in one file are
// judged apart.
func readLoadStats(d *document, c *collector) error {
	models, about := map[Phase]bool{}, object{}
	line := 0
	for v, err := range d.values() {
		if line++; err != nil {
			return err
		}
		keys := v.keys()
		if keys.get("record_type").word() != loadStatsType {
			about = keys
			continue
		}
		keys = append(slices.Clip(about), keys...) // the last counts
		step, _ := keys.get("step").whole()
		ranks, _ := keys.get("num_ranks").whole()
		if c.Ranks = cmp.Or(c.Ranks, int(ranks)); ranks != int64(c.Ranks) || bounded(0, c.Ranks) != nil {
			return fmt.Errorf("line %d: want steps on one number of ranks, at most %d, have %d and %d", line, maxRanks, c.Ranks,
				ranks)
		}
		key := stepKey{iteration: step, phase: Phase(keys.get("model").word())}
		models[key.phase] = true
		load, err := keys.get("expert_load").matrix()
		p2l, also := keys.get("p2l_map").matrix()
		if err = cmp.Or(err, also); err == nil {
			err = c.layersOfCopies(key, 0, load, p2l, "")
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := c.complete(1); err != nil || len(models) > 1 {
		return err
	}
	for _, s := range c.cells { // one model tells nothing apart
		s.Phase = ""
	}
	return nil
}
