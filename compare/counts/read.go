package counts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Read reads the expert statistics at path, a file or a folder, whatever engine
// wrote them; see Formats. Errors name the path, say what was found and what
// would have been understood.
func Read(path string) (*Record, error) {
	r, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("reading expert statistics %q: %w", path, err)
	}
	return r, nil
}

// ReadPlacement reads where the experts are: a TensorRT-LLM EPLB configuration,
// a vllm-ascend or MindIE expert map, or vLLM's initial mapping. ranks is the
// EP size for the formats that list slots only; 0 where the file says it.
func ReadPlacement(path string, ranks int) (*Placement, error) {
	p, err := readPlacement(path, ranks)
	if err != nil {
		return nil, fmt.Errorf("reading the placement %q: %w", path, err)
	}
	return p, nil
}

// Formats lists what Read understands, for help and messages.
func Formats() []string {
	var names []string
	for _, f := range folderFormats {
		names = append(names, f.name)
	}
	names = append(names, torchStatFormat, npyFormat)
	for _, f := range jsonFormats {
		names = append(names, f.name)
	}
	for _, f := range textFormats {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func read(path string) (*Record, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, bare(err)
	}
	if info.IsDir() {
		return readFolder(path)
	}
	content, err := readWhole(path)
	if err != nil {
		return nil, err
	}
	return parse(path, content)
}

// folderFormats are told by the names of a folder's files.
var folderFormats = []struct {
	name string
	file *regexp.Regexp
	read func(dir string, files []string) (*Record, error)
}{
	{tensorrtFormat, regexp.MustCompile(`^meta_info\.json$`), func(dir string, _ []string) (*Record, error) { return readTensorRT(dir) }},
	{torchPassFormat, regexp.MustCompile(`^expert_distribution_recorder_.*\.pt$`), readTorchFolder},
	{mcoreFormat, regexp.MustCompile(`^mcore_ep_loads_.*\.npz$`), readMcoreFolder},
}

func readFolder(dir string) (*Record, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, bare(err)
	}
	for _, f := range folderFormats {
		var files []string
		for _, e := range entries { // sorted by name
			if f.file.MatchString(e.Name()) {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
		if len(files) > 0 {
			return f.read(dir, files)
		}
	}
	return nil, fmt.Errorf("this folder holds no statistics that are understood: want meta_info.json with rank0.safetensors, … (TensorRT-LLM), expert_distribution_recorder_*.pt (SGLang) or mcore_ep_loads_*.npz (Megatron)")
}

// parse tells the format of one file by its content.
func parse(path string, content []byte) (*Record, error) {
	text := bytes.TrimSpace(content)
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("the file is empty")
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		return readZip(path, content)
	case bytes.HasPrefix(content, []byte(npyMagic)):
		return readNPY(path, content)
	case len(content) > 8 && content[8] == '{' && content[7] == 0:
		return nil, fmt.Errorf("this is one safetensors file: give the folder that holds all ranks' files and meta_info.json")
	case text[0] == '{' || text[0] == '[':
		return parseJSON(path, text)
	}
	if eplbLine.Match(content) {
		return nil, errPlacement
	}
	for _, f := range textFormats {
		if f.line.Match(content) {
			return f.read(path, content)
		}
	}
	return nil, fmt.Errorf("not a format that is understood: want one of %s", strings.Join(Formats(), "; "))
}

// textFormats are told by a line that only they have.
var textFormats = []struct {
	name string
	line *regexp.Regexp
	read func(path string, content []byte) (*Record, error)
}{
	{prometheusFormat, prometheusLine, readPrometheus},
	{logFormat, logLine, readLog},
	{csvFormat, csvHeader, readCSV},
}

// errPlacement is what Read says of a file that only ReadPlacement understands.
var errPlacement = errors.New("this says where the experts are, not how often they were chosen: give it as the placement, beside a record of counts")

// jsonFormats are told by keys of the first object. One file may hold several
// objects, one per line.
var jsonFormats = []struct {
	name string
	keys []string
	read func(path string, objects []json.RawMessage) (*Record, error)
}{
	{benchPatternFormat, []string{"slot_dispatch_matrix", "expert_histogram"}, readBenchPattern},
	{calibrationFormat, []string{"all_ranks_records"}, readCalibration},
	{vllmDumpFormat, []string{"snapshots", "num_logical_experts"}, readVLLMDump},
	{vllmLinesFormat, []string{"record_type"}, readVLLMLines},
	{vllmSparseFormat, []string{"layer", "counts", "num_logical_experts"}, readVLLMSparse},
	{fastDeployFormat, []string{"tokens_per_expert_stats_list"}, readFastDeploy},
	{fastDeployFormat, []string{"data"}, readFastDeploy},
}

// parseJSON reads all values of the text and tells their format by the first.
func parseJSON(path string, text []byte) (*Record, error) {
	objects, keys, err := jsonObjects(text)
	if err != nil {
		return nil, err
	}
	has := func(wanted ...string) bool {
		return !slices.ContainsFunc(wanted, func(k string) bool { return keys[k] == nil })
	}
	for _, f := range jsonFormats {
		if has(f.keys...) {
			return f.read(path, objects)
		}
	}
	switch {
	case has("layer_list"), has("initial_global_assignments"):
		return nil, errPlacement
	case has("benchmark", "results"):
		return nil, fmt.Errorf("this is a bench_moe result, which holds no counts per expert: give the routing pattern file instead")
	}
	var names []string
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("JSON of no format that is understood: its keys are %s", strings.Join(names[:min(len(names), 8)], ", "))
}

// jsonObjects splits the text into its JSON objects and reads the first one's
// keys.
func jsonObjects(text []byte) (objects []json.RawMessage, keys map[string]json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var object json.RawMessage
		if err := dec.Decode(&object); err == io.EOF {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("value %d is not JSON: %w", len(objects)+1, err)
		}
		objects = append(objects, object)
	}
	if err := json.Unmarshal(objects[0], &keys); err != nil {
		return nil, nil, fmt.Errorf("want JSON objects: %w", err)
	}
	return objects, keys, nil
}

// bare takes the path off an error of package os, for messages that name it
// already.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// readWhole reads a file of at most maxFile bytes.
func readWhole(path string) (text []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("want at most %d bytes, have more", maxFile)
	}
	return text, nil
}
