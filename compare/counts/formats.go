package counts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router/input"
)

// Format is one way in which an engine or a tool records expert load: what recognizes it in a
// document, and what maps it to a record.
type Format struct {
	ID     string // a short name for help: "npy"
	Name   string // as results carry it
	Header string // what it begins with: a first line, keys, or file names
	Origin string // the flag, variable or endpoint that makes the engine record it

	match func(*document) bool
	read  func(*document, *Record) error
	array bool // whose dimensions Axes can name
}

const (
	torchStatFormat = "SGLang expert distribution (stat)"
	routedFormat    = "routed experts per token"
)

// formats are told apart by content; the first that matches reads the document.
var formats = []Format{
	{
		"trtllm-statistics", "TensorRT-LLM expert statistics",
		`folder: meta_info.json {"num_experts": 256, "num_experts_per_token": 8}, rank0.safetensors, rank1.safetensors, … ` +
			`with tensors "ITERATION_LAYER"`,
		"EXPERT_STATISTIC_ITER_RANGE=100-200 EXPERT_STATISTIC_PATH=DIR trtllm-bench …",
		holds(tensorrtInfoFile), readTensorRT, false,
	}, {
		"sglang-passes", "SGLang expert distribution (per pass)",
		"folder: expert_distribution_recorder_TIME_0.pt, expert_distribution_recorder_TIME_1.pt, …",
		"--expert-distribution-recorder-mode per_pass (or per_token); POST /start_expert_distribution_record, /stop_…, " +
			"/dump_…",
		holds(torchRecord), readTorchFolder, false,
	}, {
		"sglang-stat", torchStatFormat,
		`expert_distribution_recorder_TIME.pt: {"logical_count": [steps × layers × experts]}`,
		"--expert-distribution-recorder-mode stat; POST /start_expert_distribution_record, /stop_…, /dump_…",
		func(d *document) bool { return d.has("logical_count") && d.values[0].torch != nil }, readLogicalCount, true,
	}, {
		"sglang-counts", "SGLang logical counts",
		`{"logical_count": [[0, 5, …], …]}: layers × experts, or steps × layers × experts`,
		"a recording of SGLang as JSON, which --init-expert-location takes",
		func(d *document) bool { return d.has("logical_count") }, readLogicalCount, true,
	}, {
		"vllm-load-stats", "vLLM EPLB load statistics",
		`{"record_type": "eplb_load_stats", "step": 7, "expert_load": [[5, 1, …], …], "p2l_map": [[0, 1, …], …]}, a line a ` +
			`step`,
		"vLLM's offline EPLB (pull request 41141), as JSONL",
		func(d *document) bool {
			return slices.ContainsFunc(d.values[:min(len(d.values), 2)], isLoadStats) // the first may be about the model
		}, readLoadStats, false,
	}, {
		"routed-experts", routedFormat,
		`one object a request with "routed_experts": [tokens × layers × top-k] or base64 of such a .npy; one a token and ` +
			`layer, {"layer": 0, "topk_ids": [7, 6, …]}; or "selected_experts" under "token_…" and "layer_…"`,
		"vLLM, SGLang: --enable-return-routed-experts; TensorRT-LLM: CompletionOutput.routed_experts, saved as JSON",
		func(d *document) bool {
			return slices.ContainsFunc(d.values[:min(len(d.values), 2)], func(v value) bool { return routedKey.Match(v.json) })
		}, readRoutes, true,
	}, {
		"matrix", "JSON matrix of loads",
		"[[0, 5, …], …]: layers × experts; --axes names other dimensions",
		"a tensor of counts printed by tolist()",
		func(d *document) bool { return d.isArray() && d.values[0].json != nil }, readArray, true,
	}, {
		"npy", "NumPy array of loads",
		".npy of integers [layers, experts]; --axes names other dimensions",
		"numpy.save; vllm-ascend's experiments",
		func(d *document) bool { return d.isArray() && d.values[0].torch == nil }, readArray, true,
	}, {
		"tensor", "PyTorch tensor of loads",
		".pt of one tensor of integers [layers, experts]; --axes names other dimensions",
		"torch.save",
		(*document).isArray, readArray, true,
	}, {
		"metrics", "Prometheus text",
		`vllm:eplb_tokens_routed_to_expert{layer_idx="3",logical_expert_id="7"} 120 (or …_to_ep_rank, ` +
			`vllm:phy_expert_heat, sglang:eplb_gpu_physical_count_bucket, sglang:eplb_balancedness_sum)`,
		"GET /metrics, or 'moebalance counts http://HOST:PORT/metrics --for 60s'; SGLang: --enable-metrics " +
			"--expert-balancedness-report-mode prometheus (before 0.5.23: --enable-expert-distribution-metrics); with " +
			"SGLANG_EPLB_HEATMAP_COLLECTION_INTERVAL=N the load per rank too",
		hasLine(metricsLine), readMetrics, false,
	}, {
		"log", "engine log lines",
		"[Expert Balancedness] … forward_pass_id=… (SGLang), EPLB step: … balancedness=… (vLLM), [Expert Hotness] … " +
			"(vllm-ascend); with counts: rank_load step=10 rank_tokens=[100, 120, …], Iter 10, [[628, 649, …], …]",
		`SGLang: --expert-balancedness-report-mode server_log (before 0.5.23: --enable-expert-distribution-metrics); vLLM: ` +
			`--eplb-config '{"log_balancedness": true}'`,
		hasLine(logLine), readLog, false,
	}, {
		"csv", "expert counts CSV",
		"layer,expert,count or layer_id,expert_id,num_tokens, without counts a row a choice; layer,0,1,2,…, a column an " +
			"expert, or rank0,rank1,…; a column of lists; step, phase, model and dataset are optional",
		"spreadsheets and scripts; older SGLang",
		func(d *document) bool { return d.isText() && csvLayout(d.text) != nil }, readCSV, false,
	},
}

// Formats lists what Read understands, by name.
func Formats() []Format {
	return slices.SortedFunc(slices.Values(formats), func(a, b Format) int { return strings.Compare(a.Name, b.Name) })
}

func holds(name *regexp.Regexp) func(*document) bool {
	return func(d *document) bool { return len(d.named(name)) > 0 }
}

func hasLine(line *regexp.Regexp) func(*document) bool {
	return func(d *document) bool { return d.isText() && line.Match(d.text) }
}

func (d *document) isArray() bool { return len(d.values) > 0 && d.values[0].isList() }

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

// parse is Read of a file's content.
func parse(path string, text []byte) (*Record, error) {
	d, err := newDocument(path, text)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return d.record()
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
	r := &Record{Source: d.path, Format: f.Name}
	err := f.read(d, r)
	if err == nil {
		err = r.finish()
	}
	if err != nil {
		return nil, unreadable(d.path, err)
	}
	return r, nil
}

// ErrUnknown is wrapped by the error about what is in no known format.
var ErrUnknown = errors.New("unknown format")

// errPlacement is what Read says of a file that only ReadPlacement understands.
var errPlacement = errors.New(
	"this file is a placement of experts, not counts: pass a record of counts ('moebalance counts' takes the placement " +
		"beside it, with --placement)")

// hookProof is what 'moebalance hook' writes beside the counts, or without any.
var hookProof = regexp.MustCompile(`^moebalance-hook\.rank\d+\.json$`)

// unknown is what to say of a document of no format.
func (d *document) unknown() error {
	switch {
	case len(d.named(hookProof)) > 0:
		return d.unrecorded()
	case d.text == nil:
		return errors.New("no expert counts in this folder: want meta_info.json with rank0.safetensors, … (TensorRT-LLM) " +
			"or expert_distribution_recorder_*.pt (SGLang); name files of other formats one by one (DIR/*.json); 'moebalance " +
			"trace' reads traces")
	case d.has("records"):
		return errors.New("this is one rank's dump of passes, and the load is the sum over the ranks: give the folder that " +
			"holds all of them")
	case len(d.values) > 0 && d.values[0].torch != nil:
		return errors.New("want a dump of SGLang's expert distribution recorder, which has logical_count or records, have " +
			"another file of torch.save")
	case d.placed() != nil:
		return errPlacement
	case d.has("traceEvents"), bytes.HasPrefix(d.text, []byte("SQLite format 3\x00")):
		return errors.New("this is a trace, not counts: 'moebalance trace' reads it")
	case d.has("schema_version", "kind"):
		return fmt.Errorf("this is a result of moebalance (%s), not counts: 'moebalance report' reads it", d.keys["kind"].json)
	case bytes.HasPrefix(d.text, []byte("\x1f\x8b")):
		return errors.New("this is compressed by gzip, as traces and their summaries are, which 'moebalance trace' " +
			"reads: decompress counts first")
	case d.has("benchmark", "results"):
		return errors.New("this is a bench_moe result, which holds no counts per expert")
	case d.broken != nil:
		return d.broken
	case d.values != nil && len(d.keys) == 0:
		return fmt.Errorf("%w of JSON: it is empty and holds no counts", ErrUnknown)
	case d.values != nil:
		names := slices.Sorted(maps.Keys(d.keys))
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
	switch {
	case err != nil:
		return err
	case len(proof.Hidden) > 0:
		return fmt.Errorf("the hook recorded no counts in %d steps: %s", proof.Steps, proof.Hidden[0])
	}
	return fmt.Errorf("the hook recorded no counts in %d steps: a monolithic expert kernel may choose the experts, unseen "+
		"(GPT-OSS in MXFP4 on Hopper does by default); record with a backend that shows them, such as moe_backend=marlin",
		proof.Steps)
}
