package counts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router/input"
)

// Format is one way in which an engine or a tool records expert load: what recognizes it in a
// document, and what gathers its counts.
type Format struct {
	ID     string // a short name for help: "npy"
	Name   string // as results carry it
	Origin string // the flag, variable or endpoint that makes the engine record it

	match func(*document) bool
	read  func(*document, *collector) error
	array bool // whose dimensions Axes can name
}

// The keys that tell formats of objects apart; the first object may be about the model.
var (
	copiesKey      = regexp.MustCompile(`"record_type"\s*:\s*"eplb_load_stats"`)
	routedKey      = regexp.MustCompile(`"(?:routed_experts|topk_ids|expert_ids|selected_experts)"\s*:`)
	layerCountsKey = regexp.MustCompile(`"(?:expert_counts|tokens_per_expert)"\s*:`)
)

// formats are told apart by content; the first that matches reads the document.
var formats = []Format{
	{
		"trtllm-statistics", "TensorRT-LLM expert statistics",
		"EXPERT_STATISTIC_ITER_RANGE=100-200 EXPERT_STATISTIC_PATH=DIR trtllm-bench …",
		func(d *document) bool { return len(d.named(tensorrtInfoFile)) > 0 }, readTensorRT, false,
	}, {
		"sglang-passes", "SGLang expert distribution (per pass)",
		"--expert-distribution-recorder-mode per_pass (or per_token); POST /start_expert_distribution_record, /stop_…, " +
			"/dump_…",
		func(d *document) bool { return len(d.named(torchRecord)) > 0 }, readTorchFolder, false,
	}, {
		"sglang-stat", torchStatFormat,
		"--expert-distribution-recorder-mode stat; POST /start_expert_distribution_record, /stop_…, /dump_…",
		func(d *document) bool { return d.has("logical_count") && d.first[0].torch != nil }, readObjects, true,
	}, {
		"sglang-counts", "SGLang logical counts",
		"a recording of SGLang as JSON, which --init-expert-location takes",
		func(d *document) bool { return d.has("logical_count") }, readObjects, true,
	}, {
		"vllm-load-stats", "vLLM EPLB load statistics", "vLLM's offline EPLB (pull request 41141), as JSONL",
		func(d *document) bool { return d.mentions(copiesKey) }, readObjects, false,
	}, {
		"routed-experts", routedFormat,
		"vLLM, SGLang: --enable-return-routed-experts; TensorRT-LLM: CompletionOutput.routed_experts, saved as JSON",
		func(d *document) bool { return d.mentions(routedKey) }, readObjects, true,
	}, {
		"calibration", "TensorRT-LLM calibration data", "calibration_data.json of TensorRT-LLM's layer-wise benchmarks",
		func(d *document) bool { return d.has("all_ranks_records") }, readObjects, false,
	}, {
		"layer-counts", "counts by layer",
		`JSON objects such as {"layer_idx": 3, "expert_counts": [5, 7]}, as lines or a list`,
		func(d *document) bool { return d.mentions(layerCountsKey) }, readObjects, false,
	}, {
		"matrix", "JSON matrix of loads", "a tensor of counts printed by tolist()",
		func(d *document) bool { return d.isArray() && d.first[0].json != nil }, readArray, true,
	}, {
		"npy", "NumPy array of loads", "numpy.save; vllm-ascend's experiments",
		func(d *document) bool { return d.isArray() && d.first[0].torch == nil }, readArray, true,
	}, {
		"tensor", "PyTorch tensor of loads", "torch.save", (*document).isArray, readArray, true,
	}, {
		"metrics", metricsFormat,
		"curl -o FILE http://HOST:PORT/metrics; SGLang: --enable-metrics " +
			"--expert-balancedness-report-mode prometheus (before 0.5.23: --enable-expert-distribution-metrics); with " +
			"SGLANG_EPLB_HEATMAP_COLLECTION_INTERVAL=N the load per rank too",
		func(d *document) bool { return d.isText() && metricsLine.Match(d.text) }, readMetrics, false,
	}, {
		"log", "engine log lines",
		`SGLang: --expert-balancedness-report-mode server_log (before 0.5.23: --enable-expert-distribution-metrics); vLLM: ` +
			`--eplb-config '{"log_balancedness": true}'`,
		isLog, readLog, false,
	}, {
		"csv", "expert counts CSV", "spreadsheets and scripts; older SGLang",
		func(d *document) bool { return d.isText() && csvLayout(d.text) != nil }, readCSV, false,
	},
}

// Formats lists what Read understands, by name.
func Formats() []Format {
	return slices.SortedFunc(slices.Values(formats), func(a, b Format) int { return strings.Compare(a.Name, b.Name) })
}

// Read reads the expert statistics at path, a file or a folder, whatever engine
// wrote them; see Formats. Errors are of type *input.Error.
func Read(path string) (*Record, error) { return ReadAs(path, nil) }

// ReadAs is Read of an array with the axes, nil for those that the file tells.
func ReadAs(path string, axes Axes) (*Record, error) {
	d, err := openDocument(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	d.axes = axes
	large := len(d.text) > 1<<24
	r, err := d.record()
	if large {
		runtime.GC() // the text is of no use any more, and the collector would wait for as much again
	}
	return r, err
}

// record reads the document in the first format that matches.
func (d *document) record() (*Record, error) {
	at := slices.IndexFunc(formats, func(f Format) bool { return f.match(d) })
	if at < 0 {
		return nil, unreadable(d.path, d.unknown())
	}
	f := formats[at]
	if d.axes != nil && !f.array {
		return nil, unreadable(d.path, fmt.Errorf("--axes names the dimensions of arrays, but %s says what its "+
			"numbers are: leave it out", f.Name))
	}
	c := &collector{Record: &Record{Source: d.path, Format: f.Name, Time: torchTime(d.path)}, axes: d.axes,
		cells: map[stepKey]*Step{}, most: mostCells(len(d.text))}
	err := f.read(d, c)
	if err == nil {
		err = c.finish()
	}
	if err != nil {
		return nil, unreadable(d.path, err)
	}
	return c.Record, nil
}

// unreadable names the file where the error does not.
func unreadable(path string, err error) error {
	if named := (*input.Error)(nil); errors.As(err, &named) {
		return err
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) && p.Path == path {
		err = p.Err
	}
	return &input.Error{File: path, Err: err}
}

// Files lists the files of a folder that Read may read there.
func Files(dir string) (paths []string) {
	entries, _ := os.ReadDir(dir) // a folder that cannot be read has none
	for _, e := range entries {
		for _, name := range []*regexp.Regexp{tensorrtInfoFile, tensorrtCounts, torchRecord} {
			if name.MatchString(e.Name()) {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
	}
	return paths
}

// ErrUnknown is wrapped by the error about what is in no known format.
var ErrUnknown = errors.New("unknown format")

// errPlacement is what Read says of a file that only ReadPlacement understands.
var errPlacement = errors.New(
	"this file is a placement of experts, not counts: pass a record of counts ('moebalance counts' takes the placement " +
		"beside it, with --placement)")

// hookProof is what 'moebalance hook' writes beside the counts, or without any.
var hookProof = regexp.MustCompile(`^moebalance-hook\.rank\d+\.json$`)

// logPrefix is how the lines of a log begin: "[2025-06-02 10:11:12 TP0] Prefill …".
var logPrefix = regexp.MustCompile(`^\[[^\]\n"{}]*\][ \t]*[^\s\],]`)

// benchmarkKey is in the reports of benchmarks.
var benchmarkKey = regexp.MustCompile(`"(?:benchmark|completed|request_throughput|overall_throughput|` +
	`median_decode_latency|system_output_throughput_tok_s)"\s*:`)

// others are documents that hold no counts that can be judged, and what to do with them.
var others = []struct {
	match func(*document) bool
	says  string
}{
	{func(d *document) bool { return d.text == nil },
		"no expert counts in this folder: want meta_info.json with rank0.safetensors, … (TensorRT-LLM) or " +
			"expert_distribution_recorder_*.pt (SGLang); name files of other formats one by one (DIR/*.json); 'moebalance " +
			"trace' reads traces"},
	{func(d *document) bool { return d.has("records") },
		"this is one rank's dump of passes, and the load is the sum over the ranks: give the folder that holds all of them"},
	{func(d *document) bool { return len(d.first) > 0 && d.first[0].torch != nil },
		"want a dump of SGLang's expert distribution recorder, which has logical_count or records, have another file of " +
			"torch.save"},
	{func(d *document) bool { return d.placed() != nil }, errPlacement.Error()},
	{func(d *document) bool {
		return d.has("traceEvents") || bytes.HasPrefix(d.text, []byte("SQLite format 3\x00"))
	},
		"this is a trace, not counts: 'moebalance trace' reads it"},
	{func(d *document) bool { return d.has("schema_version", "kind") },
		"this is a result of moebalance, not counts: 'moebalance report' reads it"},
	{func(d *document) bool { return bytes.HasPrefix(d.text, []byte("\x1f\x8b")) },
		"this is compressed by gzip, as traces and their summaries are, which 'moebalance trace' reads: decompress counts " +
			"first"},
	{func(d *document) bool { return benchmarkKey.Match(d.text[:min(len(d.text), 1<<16)]) },
		"this is the report of a benchmark, not counts: 'moebalance compare' reads it"},
	{func(d *document) bool { return d.isText() && logPrefix.Match(d.text) },
		"no line of this log tells expert load: 'moebalance counts --help' names the options that print such lines"},
}

// unknown is what to say of a document of no format.
func (d *document) unknown() error {
	if len(d.named(hookProof)) > 0 {
		return d.unrecorded()
	}
	for _, o := range others {
		if o.match(d) {
			return errors.New(o.says)
		}
	}
	var names []string
	for _, f := range d.keys {
		names = append(names, f.key)
	}
	slices.Sort(names)
	switch {
	case d.broken != nil:
		return d.broken
	case d.first != nil && len(names) == 0:
		return fmt.Errorf("%w of JSON: it is empty and holds no counts", ErrUnknown)
	case d.first != nil:
		return fmt.Errorf("%w of JSON: its keys are %s", ErrUnknown, strings.Join(names[:min(len(names), 8)], ", "))
	}
	return fmt.Errorf("%w: want expert counts, have a file that begins with %q; 'moebalance counts --help' lists the formats",
		ErrUnknown, d.text[:min(len(d.text), 12)])
}

// unrecorded says why a folder of the hook holds no counts: a monolithic kernel chooses the experts
// itself, so that nothing outside it sees them.
func (d *document) unrecorded() error {
	var proof struct {
		Steps  int      `json:"steps"`
		Hidden []string `json:"hidden"` // which kernel hides its choices, and which backend shows them
	}
	text, err := input.ReadFile(d.named(hookProof)[0], 1<<20)
	if err == nil {
		err = json.Unmarshal(text, &proof)
	}
	if err != nil {
		return err
	}
	why := append(proof.Hidden, "a monolithic expert kernel may choose the experts, unseen (GPT-OSS in MXFP4 on Hopper "+
		"does by default); record with a backend that shows them, such as moe_backend=marlin")[0]
	return fmt.Errorf("the hook recorded no counts in %d steps: %s", proof.Steps, why)
}
