package metrics

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// fixtures are the files of testdata/outputs, and the samples that stand in one of them under a title each. Numbers of
// ais_bench are from vllm-project/vllm-ascend's documentation of Hunyuan-A13B, of evalscope from vLLM's pull request
// 27776, of mini-sglang from its request 59, of guidellm from rsevilla87/guidellm-results-parser, of llmperf from
// philschmid.de's benchmark of Llama 3 on Inferentia2, of llama-bench from its build 11265 on an RTX 3090, of
// inference-perf from its demo of batch sizes, of SGLang's configured logger and of Triton's log from SGLang's request
// 11854 and tensorrtllm_backend's issue 217.
//
//   - iteration-log.txt: 34 whole rows and a cut one. Rows 2 to 31 are decode steps of the full batch, 4 requests: 30 of
//     them, of which a tenth is warm-up. The 27 left are rows 5 to 31: 14 odd ones of 11.25 ms and 13 even ones of 11.
//   - print-iter-log-3.txt: two ranks, rows 102 to 107. The time of row i stands in row i+1: 11 … 15 on rank 0 and
//     12 … 16 on rank 1, which is slower in each; the last row of each has none.
//   - print-iter-log-4.txt: row 106 is missing, so nobody knows the device time of row 105.
//   - sglang-decode.log: 32 requests at 800 and 640 tokens/s, two of them a step: 80 ms on rank 0 and 100 on rank 1.
//   - triton-iterations.log: no times, but which iterations are worth recording.
var fixtures = readFixtures()

func readFixtures() map[string]string {
	texts := map[string]string{}
	for _, path := range require.Value(filepath.Glob("../../../testdata/outputs/*")) {
		texts[filepath.Base(path)] = string(require.Value(os.ReadFile(path)))
	}
	titles := regexp.MustCompile(`(?m)^-- (.*) --\n`)
	samples := titles.Split(texts["samples.txt"], -1)
	for i, title := range titles.FindAllStringSubmatch(texts["samples.txt"], -1) {
		texts[title[1]] = samples[i+1]
	}
	delete(texts, "samples.txt")
	return texts
}

var update = flag.Bool("update", false, "rewrite testdata/golden/reports.txt")

// said is what a sample says: its metrics with unit and definition, work, setup, and warnings.
func said(name string) string {
	var b strings.Builder
	r, err := Parse(name, strings.NewReader(fixtures[name]), nil)
	fmt.Fprintf(&b, "%s\n  %s by %s, %v\n", name, r.Format, r.Primary, err)
	for _, m := range r.Metrics {
		fmt.Fprintf(&b, "  %s = %v %s, higher %t: %s\n", m.Name, m.Value, m.Unit, m.HigherIsBetter, m.Definition)
	}
	fmt.Fprintf(&b, "  work %v\n  setup %v\n  proof %+v\n", r.Work, r.Setup, r.Proof)
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "  %s\n", w)
	}
	return b.String()
}

// Every name of a table is in a sample: without it, some sample reads otherwise. What they say is in a file, which was
// read by hand.
func TestEveryNameHasASample(t *testing.T) {
	const golden = "../../../testdata/golden/reports.txt"
	names, before, all := slices.Sorted(maps.Keys(fixtures)), map[string]string{}, ""
	for _, name := range names {
		before[name] = said(name)
		all += before[name]
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(all), 0o600))
	}
	if string(require.Value(os.ReadFile(golden))) != all {
		t.Error("samples read otherwise: go test -update ./compare/bench/metrics, and read the difference of", golden)
	}
	tables := map[string]map[string]string{"dictionary": meanings, "settings": settings, "statistics": statistics}
	for _, f := range formats {
		tables[f.Format+" "+f.Rule] = f.Means
	}
	for table, words := range tables {
		for name, word := range maps.Clone(words) {
			delete(words, name)
			if name != "" && !slices.ContainsFunc(names, func(sample string) bool { return said(sample) != before[sample] }) {
				t.Errorf("%s: no sample has %q", table, name)
			}
			words[name] = word
		}
	}
}

// A report without a number that its format needs is refused: here the number's names mean nothing.
func TestEveryNeedIsNeeded(t *testing.T) {
	for _, f := range formats {
		for _, need := range f.Needs {
			names, words, refused := maps.Clone(meanings), maps.Clone(vocabulary), 0
			named := func(_, word string) bool { return strings.HasPrefix(word, need) }
			maps.DeleteFunc(meanings, named)
			maps.DeleteFunc(vocabulary, func(name string, _ word) bool { return name == need || strings.HasPrefix(need, name) })
			own := maps.Clone(f.Means)
			maps.DeleteFunc(f.Means, named)
			for _, text := range fixtures {
				if _, err := Parse("r", strings.NewReader(text), nil); strings.Contains(fmt.Sprint(err), f.Format+" report: want "+need) {
					refused++
				}
			}
			if meanings, vocabulary, f.Means = names, words, own; refused == 0 {
				t.Errorf("%s without %s is a report", f.Format, need)
			}
		}
	}
}

// Every unit, as how many of ours it is.
func TestUnits(t *testing.T) {
	n := 0
	for unit, names := range map[string]string{
		"ms": "ns=1e-6 us=1e-3 µs=1e-3 ms=1 milliseconds=1 s=1e3 sec=1e3 second=1e3 seconds=1e3",
		"tok/s": "tok/s=1 t/s=1 tps=1 token/s=1 tokens/s=1 tokens/sec=1 tokens/second=1 tokens/sec/user=1 " +
			"tokens/second/user=1 tokens/sec/gpu=1 tps/user=1 tps/gpu=1",
		"req/s": "req/s=1 req/sec=1 requests/s=1 requests/sec=1 requests/second=1 per_sec=1",
	} {
		for _, said := range strings.Fields(names) {
			name, by, _ := strings.Cut(said, "=")
			want := require.Value(strconv.ParseFloat(by, 64))
			if u := units[name]; u.unit != unit || u.by != want {
				t.Errorf("%s: %+v, want %g %s", name, u, want, unit)
			}
			n++
		}
	}
	if n != len(units) {
		t.Errorf("%d units, want %d", len(units), n)
	}
}

// Percentiles of two tools are two quantities; percentiles in a tool's two outputs, and throughputs, are one.
func TestPercentilesOfDifferentToolsDoNotCompare(t *testing.T) {
	median := func(file string) Metric {
		m, _ := require.Value(Parse("output", strings.NewReader(fixtures[file]), nil)).Metric("ttft_p50")
		return m
	}
	trtllm := median("trtllm-bench-c.txt")
	if report := median("trtllm-report.json"); report.Metric != trtllm.Metric {
		t.Errorf("%+v and %+v", report, trtllm)
	}
	for _, file := range []string{"aiperf.json", "serving-vllm.jsonl", "genai-perf.json", "serving-sglang.txt"} {
		if trtllm.Metric == median(file).Metric {
			t.Errorf("%s: %+v", file, median(file))
		}
	}
}
