package counts

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router/input"
)

// Read reads the expert statistics at path, a file or a folder, whatever engine
// wrote them; see Formats. Errors are of type *input.Error.
func Read(path string) (*Record, error) { return ReadAs(path, nil) }

// ReadAs is Read of an array with the axes, nil for those that the file tells.
func ReadAs(path string, axes Axes) (*Record, error) {
	s, err := openSource(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	s.axes = axes
	large := len(s.content) > 1<<24
	r, err := s.record()
	if large {
		runtime.GC() // the text is of no use any more, and the collector would wait for as much again
	}
	return r, err
}

// parse is Read of a file's content.
func parse(path string, content []byte) (*Record, error) {
	s, err := newSource(path, content)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return s.record()
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
	entries, _ := os.ReadDir(dir) // ignore unreadable directories
	for _, e := range entries {
		if slices.ContainsFunc(folderFiles, func(name *regexp.Regexp) bool { return name.MatchString(e.Name()) }) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

var folderFiles = []*regexp.Regexp{tensorrtInfoFile, tensorrtCounts, torchRecord}

func hasFile(name *regexp.Regexp) func(*source) bool {
	return func(s *source) bool { return len(s.named(name)) > 0 }
}

func hasMember(suffix string) func(*source) bool {
	return func(s *source) bool {
		return slices.ContainsFunc(s.members, func(m *zip.File) bool { return strings.HasSuffix(m.Name, suffix) })
	}
}

func hasKeys(keys ...string) func(*source) bool {
	return func(s *source) bool {
		return !slices.ContainsFunc(keys, func(k string) bool { return s.keys[k] == nil })
	}
}

func hasLine(line *regexp.Regexp) func(*source) bool {
	return func(s *source) bool { return s.values == nil && line.Match(s.content) }
}

// source is one input, opened as far as formats are told apart by.
type source struct {
	path    string
	files   []string                   // of a folder, by name
	content []byte                     // of a file
	members []*zip.File                // of a zip
	values  []json.RawMessage          // of JSON, one value or several
	keys    map[string]json.RawMessage // of the first value, where it is an object
	axes    Axes                       // that are asked for
	broken  error                      // where the text begins like JSON and is none
}

func openSource(path string) (*source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		content, err := input.ReadFile(path, maxFile)
		if err != nil {
			return nil, err
		}
		return newSource(path, content)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	s := &source{path: path}
	for _, e := range entries { // sorted by name
		s.files = append(s.files, filepath.Join(path, e.Name()))
	}
	return s, nil
}

// newSource tells the container of a file's content: zip, JSON or neither.
func newSource(path string, content []byte) (*source, error) {
	s := &source{path: path, content: content}
	text := bytes.TrimSpace(content)
	switch {
	case len(text) == 0:
		return nil, errors.New("the file is empty")
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return nil, err
		}
		s.members = z.File
	case len(content) > 8 && content[8] == '{' && content[7] == 0:
		return nil, errors.New(
			"this is one safetensors file: give the folder that holds all ranks' files and meta_info.json")
	case text[0] == '{' || text[0] == '[':
		if s.broken = s.split(text); s.broken != nil {
			s.values = nil // a log may begin with "[2026-11-22 …"
		}
	}
	return s, nil
}

// split splits a text into its JSON values, without a copy of them, and reads the first
// one's keys.
func (s *source) split(text []byte) (err error) {
	if s.values, err = jsonValues(text); err != nil {
		return err
	}
	if first := s.values[0]; first[0] == '[' {
		if inner := bytes.TrimLeft(first[1:], " \t\r\n"); len(s.values) > 1 || inner[0] != '{' {
			return nil
		}
		dec := decoder(first)
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		s.values = nil // a list of what JSON lines hold
		for dec.PeekKind() != ']' {
			value, err := nextValue(dec, first)
			if err != nil {
				return err
			}
			s.values = append(s.values, value)
		}
	}
	s.keys, err = jsonKeys(s.values[0])
	return err
}

func decoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
}

// nextValue is the part of the text that the next value of its decoder takes.
func nextValue(dec *jsontext.Decoder, text []byte) (json.RawMessage, error) {
	value, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := dec.InputOffset()
	return text[end-int64(len(value)) : end : end], nil
}

// jsonValues are the values of a text, one after another.
func jsonValues(text []byte) (values []json.RawMessage, err error) {
	for dec := decoder(text); ; {
		value, err := nextValue(dec, text)
		if err == io.EOF {
			return values, nil
		} else if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, fmt.Errorf("the JSON ends early, after %d bytes: write it again", len(text))
			}
			return nil, fmt.Errorf("value %d is not JSON: %s", len(values)+1,
				strings.TrimPrefix(err.Error(), "jsontext: "))
		}
		values = append(values, value)
	}
}

// jsonKeys are the values of an object, by key.
func jsonKeys(object []byte) (map[string]json.RawMessage, error) {
	dec, keys := decoder(object), map[string]json.RawMessage{}
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		if keys[key], err = nextValue(dec, object); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// record reads the source in the first format that matches.
func (s *source) record() (*Record, error) {
	for _, f := range formats {
		if !f.match(s) {
			continue
		}
		r := &Record{Source: s.path, Format: f.Name}
		if s.axes != nil && !f.array {
			return nil, unreadable(s.path, fmt.Errorf("--axes names the dimensions of arrays, but %s says what its "+
				"numbers are: leave it out", f.Name))
		}
		err := f.read(s, r)
		if err == nil {
			err = r.finish()
		}
		if err != nil {
			return nil, unreadable(s.path, err)
		}
		return r, nil
	}
	return nil, unreadable(s.path, s.unknown())
}

// ErrUnknown is wrapped by the error about what is in no known format.
var ErrUnknown = errors.New("unknown format")

// errPlacement is what Read says of a file that only ReadPlacement understands.
var errPlacement = errors.New(
	"this file is a placement of experts, not counts: pass a record of counts ('moebalance counts' takes the placement " +
		"beside it, with --placement)")

// unknown is what to say of a source of no format.
func (s *source) unknown() error {
	switch has := func(keys ...string) bool { return hasKeys(keys...)(s) }; {
	case s.content == nil:
		return errors.New("no expert counts in this folder: want meta_info.json with rank0.safetensors, … (TensorRT-LLM) " +
			"or expert_distribution_recorder_*.pt (SGLang); name files of other formats one by one (DIR/*.json); 'moebalance " +
			"trace' reads traces")
	case s.members != nil:
		return errors.New("want a zip that torch.save wrote, such as expert_distribution_recorder_*.pt of SGLang, have " +
			"another one; of an .npz, save the array of counts [layers, experts] by numpy.save, as .npy")
	case has("layer_list"), has("initial_global_assignments"), has("physical_to_logical_map"),
		eplbLine.Match(s.content):
		return errPlacement
	case has("traceEvents"), bytes.HasPrefix(s.content, []byte("SQLite format 3\x00")):
		return errors.New("this is a trace, not counts: 'moebalance trace' reads it")
	case has("schema_version", "kind"):
		return fmt.Errorf("this is a result of moebalance (%s), not counts: 'moebalance report' reads it", s.keys["kind"])
	case bytes.HasPrefix(s.content, []byte("\x1f\x8b")):
		return errors.New("this is compressed by gzip, as traces and their summaries are, which 'moebalance trace' " +
			"reads: decompress counts first")
	case has("benchmark", "results"):
		return errors.New("this is a bench_moe result, which holds no counts per expert")
	case s.broken != nil:
		return s.broken
	case s.values != nil:
		names := slices.Sorted(maps.Keys(s.keys))
		if len(names) == 0 {
			return fmt.Errorf("%w of JSON: it is empty and holds no counts", ErrUnknown)
		}
		return fmt.Errorf("%w of JSON: its keys are %s", ErrUnknown, strings.Join(names[:min(len(names), 8)], ", "))
	}
	return fmt.Errorf("%w: want expert counts, have a file that begins with %q; 'moebalance counts --help-all' lists "+
		"the formats",
		ErrUnknown, s.content[:min(len(s.content), 12)])
}

// object decodes the only JSON value of the source.
func (s *source) object(into any) error {
	if len(s.values) != 1 {
		return fmt.Errorf("want one JSON object, have %d", len(s.values))
	}
	return json.Unmarshal(s.values[0], into)
}

// named are the folder's files whose name matches.
func (s *source) named(name *regexp.Regexp) (paths []string) {
	for _, path := range s.files {
		if name.MatchString(filepath.Base(path)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Format is one way in which an engine or a tool records expert load.
type Format struct {
	ID     string // a short name for help: "npy"
	Name   string // as results carry it
	Header string // what it begins with: a first line, keys, or file names
	Origin string // the flag, variable or endpoint that makes the engine record it

	match func(*source) bool
	read  func(*source, *Record) error
	array bool // whose dimensions Axes can name
}

// Names of formats that the code tells apart.
const (
	torchStatFormat = "SGLang expert distribution (stat)"
	torchPassFormat = "SGLang expert distribution (per pass)"
)

// formats are told apart by content; the first that matches reads the source.
var formats = []Format{
	{
		"trtllm-statistics", "TensorRT-LLM expert statistics",
		`folder: meta_info.json {"num_experts": 256, "num_experts_per_token": 8}, rank0.safetensors, rank1.safetensors, … ` +
			`with tensors "ITERATION_LAYER"`,
		"EXPERT_STATISTIC_ITER_RANGE=100-200 EXPERT_STATISTIC_PATH=DIR trtllm-bench …",
		hasFile(tensorrtInfoFile), readTensorRT, false,
	}, {
		"sglang-passes", torchPassFormat,
		"folder: expert_distribution_recorder_TIME_0.pt, expert_distribution_recorder_TIME_1.pt, …",
		"--expert-distribution-recorder-mode per_pass (or per_token); POST /start_expert_distribution_record, /stop_…, " +
			"/dump_…",
		hasFile(torchRecord), readTorchFolder, false,
	}, {
		"sglang-stat", torchStatFormat,
		`expert_distribution_recorder_TIME.pt: {"logical_count": [steps × layers × experts]}, or a .pt of one tensor ` +
			`[layers, experts]`,
		"--expert-distribution-recorder-mode stat; POST /start_expert_distribution_record, /stop_…, /dump_…",
		hasMember("/data.pkl"), readTorch, true,
	}, {
		"sglang-counts", "SGLang logical counts",
		`{"logical_count": [[0, 5, …], …]}: layers × experts, or steps × layers × experts`,
		"a recording of SGLang as JSON, which --init-expert-location takes",
		hasKeys("logical_count"), readLogicalCount, true,
	}, {
		"matrix", "JSON matrix of loads",
		"[[0, 5, …], …]: layers × experts; --axes names other dimensions",
		"a tensor of counts printed by tolist()",
		func(s *source) bool { return s.values != nil && s.values[0][0] == '[' }, readMatrix, true,
	}, {
		"routed-experts", routedFormat,
		`one object a request with "routed_experts": [tokens × layers × top-k] or base64 of such a .npy; one a token and ` +
			`layer, {"layer": 0, "topk_ids": [7, 6, …]}`,
		"vLLM, SGLang: --enable-return-routed-experts; TensorRT-LLM: CompletionOutput.routed_experts, saved as JSON",
		hasRoutes, readRoutes, false,
	}, {
		"npy", "NumPy array of loads",
		".npy of integers [layers, experts]; --axes names other dimensions",
		"numpy.save; vllm-ascend's experiments",
		func(s *source) bool { return bytes.HasPrefix(s.content, []byte(tensor.NumPyMagic)) }, readNPY, true,
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
			"(vllm-ascend)",
		`SGLang: --expert-balancedness-report-mode server_log (before 0.5.23: --enable-expert-distribution-metrics); vLLM: ` +
			`--eplb-config '{"log_balancedness": true}'`,
		hasLine(logLine), readLog, false,
	}, {
		"csv", "expert counts CSV",
		"layer,expert,count or layer_id,expert_id,num_tokens; columns step and phase are optional",
		"spreadsheets and scripts; older SGLang",
		func(s *source) bool { return s.values == nil && csvHeader(s.content) != nil }, readCSV, false,
	},
}

// Formats lists what Read understands, by name.
func Formats() []Format {
	return slices.SortedFunc(slices.Values(formats), func(a, b Format) int { return strings.Compare(a.Name, b.Name) })
}
