package counts

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
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
		if dump, err := openDocument(files[0]); err == nil && dump.has("logical_count") {
			c.Format = torchStatFormat
			return readObjects(dump, c)
		}
	}
	if c.Ranks = len(files); c.Ranks > maxRanks {
		return bounded(0, c.Ranks)
	}
	files, err := byRank(files, torchRank)
	if err != nil {
		return err
	}
	w := newObjects(c)
	for rank, path := range files {
		w.source = rank
		dump, err := openDocument(path)
		if err == nil && !dump.has("records") {
			err = fmt.Errorf("want a list of records: this is no dump of passes")
		}
		if err == nil {
			err = w.all(dump)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return w.end(len(files))
}
