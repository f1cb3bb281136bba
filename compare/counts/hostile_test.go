package counts

import (
	"archive/zip"
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/testdata/require"
)

func content(parts ...string) []byte {
	return must(os.ReadFile(fixture(append([]string{"counts"}, parts...)...)))
}

// A binary file cut at any byte is refused; so is one with a byte too many,
// where the format knows its length.
func TestBinaryFilesCutAnywhere(t *testing.T) {
	for _, name := range []string{"sglang-stat.pt", "sglang-strided.pt", "loads_c.npy", "loads_fortran.npy"} {
		whole := content(name)
		for n := range whole {
			if r, err := parse(name, whole[:n]); err == nil {
				t.Fatalf("%s cut to %d of %d bytes was read: %+v", name, n, len(whole), r)
			}
		}
		if strings.HasSuffix(name, ".npy") {
			if _, err := parse(name, append(whole, 0)); err == nil {
				t.Errorf("%s with a byte too many was read", name)
			}
		}
	}
}

// archive builds a zip in memory.
func archive(t testing.TB, members map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range members {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

// tensorPickle is {"logical_count": a tensor of IntStorage "0"} with this shape
// and stride, three small numbers each.
func tensorPickle(shape, stride string) string {
	number := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			b.WriteString("K" + string([]byte{c}))
		}
		return b.String()
	}
	return "\x80\x02}X\x0d\x00\x00\x00logical_countctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nIntStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x08tQK\x00" +
		number(shape) + "\x87" + number(stride) + "\x87tRs."
}

func TestTorchRefusals(t *testing.T) {
	eight := strings.Repeat("\x01\x00\x00\x00", 8)
	ok := archive(t, map[string]string{"x/data.pkl": tensorPickle("\x01\x02\x04", "\x08\x04\x01"), "x/data/0": eight})
	if r, err := parse("x", ok); err != nil || len(r.steps) != 2 {
		t.Fatalf("the well-formed one: %+v, %v", r, err)
	}
	for name, c := range map[string]struct {
		members map[string]string
		want    string
	}{
		"no storage": {map[string]string{"x/data.pkl": tensorPickle("\x01\x02\x04", "\x08\x04\x01")},
			"no member"},
		"a short storage": {map[string]string{"x/data.pkl": tensorPickle("\x01\x02\x04", "\x08\x04\x01"),
			"x/data/0": eight[:28]}, "storage of 7 elements"},
		"a wide stride": {map[string]string{"x/data.pkl": tensorPickle("\x01\x02\x04", "\x08\x05\x01"),
			"x/data/0": eight}, "outside its storage"},
		"repeated elements": {map[string]string{"x/data.pkl": tensorPickle("\xff\xff\xff", "\x00\x00\x00"),
			"x/data/0": eight}, "storage of 8 elements"},
		"no layers": {map[string]string{"x/data.pkl": tensorPickle("\x01\x00\x04", "\x08\x04\x01"),
			"x/data/0": eight}, "want steps, layers and experts"},
		"a list":            {map[string]string{"x/data.pkl": "\x80\x02]."}, "have [0]"},
		"another dump":      {map[string]string{"x/data.pkl": "\x80\x02}."}, "of 0 keys"},
		"an array of NumPy": {map[string]string{"counts.npy": ""}, "save the array of counts"},
	} {
		if r, err := parse("x", archive(t, c.members)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, r, err, c.want)
		}
	}
}

// Whatever is accepted can be judged, and its numbers are in range.
func FuzzParse(f *testing.F) {
	for _, name := range []string{
		"bench-result.json", "engine.log", "eplb.yaml", "expert-map.json", "logical-count.json",
		"loads_c.npy", "loads_fortran.npy", "sglang-stat.pt", "sglang.csv", "vllm-mapping.json",
		"sglang-pass/expert_distribution_recorder_17.5_0.pt", "torch-module.pt", "spreadsheet.csv", "phases.csv",
		"routed-requests.jsonl", "routed-tokens.jsonl", "sglang.log", "vllm-stalled.log", "expert-location.json",
		"users/wide.csv", "users/lists.csv", "users/load-stats.jsonl", "users/selected-experts.json", "users/iter.log",
	} {
		f.Add(content(name))
	}
	for _, text := range []string{`[[1, 2], [3, 4]]`, `{"logical_count": [[[0, 0]], [[1, 2.0]]]}`, `{"layers": {"3": {"1": 7}}}`,
		`{"layer_3": [5, 7]}`, `{"prefill": {"expert_counts": [[5, 7]]}, "usage": {"prompt_tokens": 3}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(checkParsed)
}

// checkParsed judges what is accepted.
func checkParsed(t *testing.T, b []byte) {
	r, err := parse("x", b)
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %v", err)
		}
		return
	}
	if r.Experts > 512 || len(r.steps) > 64 {
		return // judging that takes long
	}
	var slots int64
	for _, part := range r.Phases() {
		slots += part.Slots()
		layers, _, err := part.Imbalance(Options{Threshold: 0.1})
		if err != nil {
			continue
		}
		for _, l := range layers {
			if l.Steps > 0 && (!(l.MaxOverMean >= 0.999999) || !(l.Floor >= 1) || l.MaxOverMean < l.Floor*0.999999) {
				t.Errorf("%+v", l)
			}
		}
	}
	if slots != r.Slots() {
		t.Errorf("%d slots in all phases, %d in the record", slots, r.Slots())
	}
}

func FuzzPlacement(f *testing.F) {
	for _, name := range []string{"eplb.yaml", "expert-map.json", "vllm-mapping.json"} {
		f.Add(content(name), 2)
	}
	f.Fuzz(func(t *testing.T, b []byte, ranks int) {
		if p, err := placementOf("x", b, ranks); err == nil && (p.Ranks < 1 || p.Experts < 1) {
			t.Errorf("%+v", p)
		}
	})
}

// parse is Read of a file's content.
func parse(path string, text []byte) (r *Record, err error) {
	err = reading(path, func() { r = newDocument(path, text).record(nil) })
	return r, err
}

// placementOf is ReadPlacement of a file's content.
func placementOf(path string, text []byte, ranks int) (p *placement.Map, err error) {
	err = reading(path, func() { p = newDocument(path, text).placement(ranks) })
	return p, err
}
