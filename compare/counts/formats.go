package counts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// Format is one way in which an engine or a tool records expert load.
type Format struct {
	ID     string // a short name for help: "npy"
	Name   string // as results carry it
	Origin string // the flag, variable or endpoint that makes the engine record it
}

// Formats lists what Read understands, by name.
func Formats() []Format {
	return []Format{
		{"routed-experts", routedFormat, "vLLM, SGLang: --enable-return-routed-experts; TensorRT-LLM: " +
			"CompletionOutput.routed_experts, saved as JSON"},
		{"sglang-passes", passFormat, "--expert-distribution-recorder-mode per_pass (or per_token); POST " +
			"/start_expert_distribution_record, /stop_…, /dump_…"},
		{"sglang-stat", statFormat, "--expert-distribution-recorder-mode stat; POST as above"},
		{"sglang-counts", countsFormat, "a recording of SGLang as JSON, which --init-expert-location takes"},
		{"trtllm-statistics", "TensorRT-LLM expert statistics",
			"EXPERT_STATISTIC_ITER_RANGE=100-200 EXPERT_STATISTIC_PATH=DIR trtllm-bench …"},
		{"calibration", calibrationFormat, "calibration_data.json of TensorRT-LLM's layer-wise benchmarks"},
		{"vllm-load-stats", loadFormat, "vLLM's offline EPLB (pull request 41141), as JSONL"},
		{"layer-counts", layerFormat, `JSON such as {"layer_idx": 3, "expert_counts": [5, 7]} or {"layer_3": [5, 7]}`},
		{"matrix", "JSON matrix of loads", "a tensor of counts printed by tolist()"},
		{"npy", "NumPy array of loads", "numpy.save; vllm-ascend's experiments"},
		{"tensor", "PyTorch tensor of loads", "torch.save"},
		{"csv", "expert counts CSV", "spreadsheets and scripts; older SGLang"},
		{"metrics", "Prometheus text", "curl -o FILE http://HOST:PORT/metrics; SGLang: --enable-metrics, with " +
			"SGLANG_EPLB_HEATMAP_COLLECTION_INTERVAL=N for the load per rank"},
		{"log", "engine log lines", `SGLang: --expert-balancedness-report-mode server_log (before 0.5.23: ` +
			`--enable-expert-distribution-metrics); vLLM: --eplb-config '{"log_balancedness": true}'`},
	}
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
	large := len(d.text) > 1<<24
	r, err := d.record(axes)
	if large {
		runtime.GC() // the text is of no use any more, and the collector would wait for as much again
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	return r, nil
}

// record reads the document by its container: a folder, a tree of objects and arrays, a table, or lines.
func (d *document) record(axes Axes) (*Record, error) {
	for _, other := range others {
		if other.match(d) {
			return nil, errors.New(other.say)
		}
	}
	c := newCollector(d, axes)
	var t *table
	var err error
	switch {
	case d.text == nil:
		err = c.readFolder(d)
	case d.root != nil:
		err = c.objects(d)
	case d.isText():
		if t, err = openTable(d); t != nil && err == nil {
			err = c.readTable(t)
		} else if t == nil {
			err = c.readLines(d)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case c.Format == "":
		return nil, d.unknown()
	case axes != nil && d.root == nil:
		return nil, fmt.Errorf("--axes names the dimensions of arrays, but %s says what its numbers are: leave it out",
			c.Format)
	case c.Format == countsFormat && (d.text == nil || d.binary != ""):
		c.Format = statFormat
	}
	return c.Record, c.finish()
}

// mostLayers are more than any model has; an array of more is of steps or tokens.
const mostLayers = 256

// bare adds a list of lists, a tensor or an array that is alone in its file. Two dimensions
// are layers and experts unless they are named.
func (c *collector) bare(d *document, v any, values int) error {
	a, err := arrayOf(v)
	axes := Axes{"layers", "experts"}
	if c.axes != nil {
		axes = c.axes
	}
	c.Format = map[string]string{"": "JSON matrix"}[d.binary] + d.binary + " of loads"
	switch {
	case values > 1:
		return errors.New("want one list or object, have several values")
	case err != nil:
		return err
	case c.axes == nil && isMap(a):
		return fmt.Errorf("%w; or say that these are counts, by --axes layers,experts", errPlacement)
	case c.axes == nil && (len(a.Shape) != 2 || a.Shape[0] > mostLayers):
		return fmt.Errorf("want counts of layers × experts, have %s, %v, whose order the file does not tell: "+
			"'moebalance counts' and 'place' take --axes steps,layers,experts or layers,ranks,experts or "+
			"tokens,layers,topk", quantity.Count(len(a.Shape), "dimension"), a.Shape)
	case axes.areChoices():
		c.Format = routedFormat
	}
	return c.array(a, axes, nothing())
}

// isMap reports lists that map physical copies to experts, or experts to ranks, as no counts do: a number is −1, which
// is none, or every layer holds each number from 0 to the largest of all.
func isMap(a tensor.Array) bool {
	if len(a.Values) == 0 || slices.Min(a.Values) < 0 {
		return len(a.Values) > 0 && slices.Min(a.Values) == -1
	}
	largest, width := slices.Max(a.Values), int(a.Shape[len(a.Shape)-1])
	if len(a.Shape) == 3 { // layers × ranks × experts
		width *= int(a.Shape[1])
	}
	if largest < 1 || largest >= int64(width) {
		return false
	}
	for row := range slices.Chunk(a.Values, width) {
		if int64(len(slices.Compact(slices.Sorted(slices.Values(row))))) != largest+1 {
			return false
		}
	}
	return true
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

// ErrUnknown is wrapped by the error about what is in no known format.
var ErrUnknown = errors.New("unknown format")

// errPlacement is what Read says of a file that only ReadPlacement understands.
var errPlacement = errors.New(
	"this file is a placement of experts, not counts: pass a record of counts ('moebalance counts' takes the placement " +
		"beside it, with --placement)")

var (
	// logPrefix is how the lines of a log begin: "[2025-06-02 10:11:12 TP0] Prefill …".
	logPrefix = regexp.MustCompile(`^\[[^\]\n"{}]*\][ \t]*[^\s\],]`)
	// benchmarkKey is in the reports of benchmarks.
	benchmarkKey = regexp.MustCompile(`"(?:benchmark|completed|request_throughput|overall_throughput|` +
		`median_decode_latency|system_output_throughput_tok_s)"\s*:`)
)

// others are documents that hold no counts, told apart before any counts are looked for, and what to do with them.
var others = []struct {
	match func(*document) bool
	say   string
}{
	{func(d *document) bool { return d.binary == safetensorsFile },
		"this is one safetensors file: give the folder that holds all ranks' files and meta_info.json"},
	{func(d *document) bool { return d.has("records") }, "this is one rank's dump of passes, and the load is the sum " +
		"over the ranks: give the folder that holds all of them"},
	{func(d *document) bool {
		return d.has("traceEvents") || bytes.HasPrefix(d.text, []byte("SQLite format 3\x00"))
	},
		"this is a trace, not counts: 'moebalance trace' reads it"},
	{func(d *document) bool { return d.has("schema_version", "kind") },
		"this is a result of moebalance, not counts: 'moebalance report' reads it"},
	{func(d *document) bool { return bytes.HasPrefix(d.text, []byte("\x1f\x8b")) },
		"this is compressed by gzip: decompress counts first; 'moebalance trace' reads compressed traces"},
}

// unknown is what to say of a document without any counts.
func (d *document) unknown() error {
	switch {
	case d.isPlacement():
		return errPlacement
	case benchmarkKey.Match(d.text[:min(len(d.text), 1<<16)]):
		return errors.New("this is the report of a benchmark, not counts: 'moebalance compare' reads it")
	case d.isText() && logPrefix.Match(d.text):
		return errors.New("no line of this log tells expert load: 'moebalance counts --help' names the options that print " +
			"such lines")
	case d.broken != nil:
		return d.broken
	}
	found := fmt.Sprintf("a file that begins with %q", d.text[:min(len(d.text), 12)])
	if keys := keysOf(d.root); len(keys) > 0 {
		found = "an object of the keys " + strings.Join(keys[:min(len(keys), 8)], ", ")
	} else if d.root != nil {
		found = "an object without keys"
	}
	return fmt.Errorf("%w: want expert counts, have %s; 'moebalance counts --help' lists the formats", ErrUnknown, found)
}
