package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/testdata/require"
)

func TestReportOfCaptures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector, which has no more to find here than in the other tests")
	}
	dir := t.TempDir()
	html := filepath.Join(dir, "report.html")
	ask(t, exitDone, nil, "report", "-o", html, "--png", filepath.Join(dir, "png"), "--svg", filepath.Join(dir, "svg"),
		"--title", "A & B", "../../testdata/deepseek-ep4-ranks")
	page := get(html)
	for _, want := range []string{"<span>A &amp; B</span>", "Balanced routing would be about 22.5\u00a0% faster",
		"2026-11-20, NVIDIA H200"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, figure := range []string{"rank-layer-time", "phase-time"} {
		for suffix, magic := range map[string]string{"png": "\x89PNG", "svg": "<?xml"} {
			b, err := os.ReadFile(filepath.Join(dir, suffix, figure+"."+suffix))
			if err != nil || !bytes.HasPrefix(b, []byte(magic)) {
				t.Errorf("%s.%s: %v, %.8q…", figure, suffix, err, b)
			}
		}
	}
}

// What counts and trace take, report takes: files of expert statistics, summaries and patterns.
func TestReportTakesWhatVerbsTake(t *testing.T) {
	summary := filepath.Join(t.TempDir(), "normal.summary")
	const captures = "../../testdata/deepseek-ep4-ranks/"
	ask(t, exitDone, nil, "trace", captures+"normal.rank?.sqlite", "--summary", summary)
	out := captured(t, []string{"report", summary, captures + "perfect.rank?.sqlite",
		fieldResults + "vllm-qwen3-normal.counts.json", "../../testdata/counts/vllm-stalled.log",
		captures + "counts-normal", "../../testdata/campaign-deepseek-ep4.json"})
	for _, want := range []string{" UTC, moebalance " + version, "vllm-qwen3-normal.counts.json: Rank 0 gets", // of the captures' ranks
		"learned routing: ", "balanced routing: ", ">allocated<", "they are judged apart from it",
		"\"line\">Balanced routing is 22.9\u00a0% faster.", "imbalance significant", "saved by even ranks",
		"<span>OTHER_COUNTS</span> <span>../../testdata/deepseek-ep4-ranks/counts-normal</span>"} {
		if !strings.Contains(out, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Counts that name no arm may be of the learned router: they do not stand beside the balanced trace, which they refute.
func TestReportTakesNeutralCounts(t *testing.T) {
	load := filepath.Join(t.TempDir(), "load")
	require.NoError(t, os.CopyFS(load, os.DirFS("../../testdata/deepseek-ep4-ranks/counts-normal")))
	if page := captured(t, []string{"report", "../../testdata/deepseek-ep4-ranks", load}); !strings.Contains(page, "22.5\u00a0% faster") {
		t.Errorf("%.900s", page)
	}
}

// Two folders that name no arm are a side each, as compare takes them: of captures, and of benchmark reports.
func TestReportTakesTwoFolders(t *testing.T) {
	captures := require.Value(filepath.Abs(fieldResults + "vllm-two-h200-quantized/fp8-triton"))
	t.Chdir(t.TempDir())
	require.NoError(t, errors.Join(os.Symlink(captures+"/normal", "x"), os.Symlink(captures+"/perfect", "y")))
	put(t, "a/1.json", `{"backend":"vllm","completed":20,"duration":1,"request_throughput":20,"output_throughput":130}`)
	put(t, "b/1.json", `{"backend":"vllm","completed":20,"duration":1,"request_throughput":20,"output_throughput":150}`)
	for want, sides := range map[string][]string{"Balanced routing would be about 14.2": {"x", "y"}, "1 complete pair": {"a", "b"},
		"contains neither normal nor perfect": {"a/1.json", "y"}, "two of rank 0": {"x", captures + "/../fp8-deepgemm"}} {
		if page, errs, _ := invoke(t.Context(), append([]string{"report"}, sides...)...); !strings.Contains(page+errs, want) {
			t.Errorf("%v: %s%.900s", sides, errs, page)
		}
	}
}

// One result has one number for one thing: every number of its answer, as JSON has it, is on the page, and
// text, Markdown and --brief say the same lines and first numbers, and an interval in the line is a number's.
// Those that CSV tables hold are there to the last digit. A layer, step, rank or count that there is none of is null, never a number that stands for none.
func TestOneResultHasOneNumber(t *testing.T) {
	for _, c := range []struct {
		args  []string
		inCSV string // labels of numbers that the CSV has
	}{
		{[]string{"trace", "../../testdata/deepseek-ep4-ranks/normal.rank?.sqlite"}, "worst imbalance (layer 0)"},
		{[]string{"trace", fieldResults + "vllm-two-h200-quantized/mxfp4-marlin/normal"}, "worst imbalance (layer 1)"},
		{[]string{"compare", "../../testdata/gptoss-ep4-loop", "--table", "gain"}, "saved by even ranks"},
		{[]string{"counts", "../../testdata/deepseek-ep4-ranks/counts-normal"}, "worst layer; floor there; by chance, 95th percentile"},
		{[]string{"place", "--ep", "4", "../../testdata/placement/stats"},
			"fall of the busiest rank's load; busiest rank now (max/mean); with the placement"},
		{[]string{"compare", fieldResults + "vllm-two-h200-quantized/mxfp4-marlin.campaign.json"}, "gain"},
	} {
		out, args := map[string]string{}, c.args
		for _, format := range []string{"json", "text", "md", "csv"} {
			given := args
			if at := slices.Index(args, "--table"); at >= 0 && format != "csv" {
				given = args[:at]
			}
			var code int
			if out[format], _, code = invoke(t.Context(), append(slices.Clone(given), "--format", format)...); code != exitDone {
				t.Fatalf("%v: exit %d", args, code)
			}
		}
		if at := slices.Index(args, "--table"); at >= 0 {
			args = args[:at]
		}
		brief, _, _ := invoke(t.Context(), append(slices.Clone(args), "--brief")...)
		file := put(t, filepath.Join(t.TempDir(), "r.json"), out["json"])
		page, errs, code := invoke(t.Context(), "report", file)
		var all any
		require.NoError(t, json.Unmarshal([]byte(out["json"]), &all))
		walk(all, func(key string, value any) { // what there is none of is null
			if n, ok := value.(float64); ok && n < 0 && slices.Contains(countingKeys, key) {
				t.Errorf("%v: %q is %v", args, key, n)
			}
		})
		var result struct{ Answer answer.Answer }
		if err := json.Unmarshal([]byte(out["json"]), &result); err != nil || code != exitDone {
			t.Fatalf("%v: %v, exit %d, %s", args, err, code, errs)
		}
		_, page, _ = strings.Cut(page, "</title>") // which says the line, too
		a, page := result.Answer, regexp.MustCompile(`(<[^>]*>|\s)+`).ReplaceAllString(plainText(page), " ")
		if strings.TrimSpace(brief) != a.Line {
			t.Errorf("%v: --brief says %q, JSON %q", args, brief, a.Line)
		}
		for _, said := range betweenTwo.FindAllStringSubmatch(a.Line, -1) {
			if !slices.ContainsFunc(a.Numbers, func(n answer.Number) bool { return n.Interval() == said[1]+" to "+said[2] }) {
				t.Errorf("%v: %q is the interval of none of %v", args, said[0], a.Numbers)
			}
		}
		cells := map[float64]bool{}
		for _, cell := range strings.FieldsFunc(out["csv"], func(r rune) bool { return r == ',' || r == '\n' }) {
			if x, err := strconv.ParseFloat(cell, 64); err == nil {
				cells[math.Abs(x)] = true
			}
		}
		for label := range strings.SplitSeq(c.inCSV, "; ") {
			at := slices.IndexFunc(a.Numbers, func(n answer.Number) bool { return n.Label == label })
			if at < 0 || !cells[math.Abs(a.Numbers[at].Value.Float64())] {
				t.Errorf("%v: the CSV lacks %q of %+v:\n%s", args, label, a.Numbers, out["csv"])
			}
		}
		for place, text := range map[string]string{"page": page, "text": out["text"], "md": out["md"]} {
			lacks := func(want string) bool { return !strings.Contains(text, want) }
			if said := append(a.Kinds, a.Line, a.Basis); slices.ContainsFunc(said, lacks) {
				t.Errorf("%v: the %s lacks one of %q", args, place, said)
			}
			for i, n := range a.Numbers {
				want := map[bool]string{true: n.Label + " " + n.Shown() + " " + strings.TrimPrefix(n.Interval()+" · "+string(n.Basis), " · "),
					false: n.String()}[place == "page"]
				if (i < 3 || place == "page") && !strings.Contains(text, want) {
					t.Errorf("%v: the %s lacks %q", args, place, want)
				}
			}
		}
	}
}

// betweenTwo is an interval in a sentence: −1.3 % to +1.7 %.
var betweenTwo = regexp.MustCompile(`([−\d.]+) % to \+?([−\d.]+ %)`)

// The page of several counts is of the one that counts leads with: the most uneven, over experts where no
// number of ranks is known. It names files that are named alike by their folders, and each one's evidence.
func TestReportLeadsWithTheWorstCounts(t *testing.T) {
	mild := put(t, filepath.Join(t.TempDir(), strings.Repeat("n", 50)+"-mild/c.csv"), "layer,expert,count\n0,0,60000\n0,1,40000\n")
	worst := put(t, filepath.Join(t.TempDir(), "worst/c.csv"), "layer,expert,count\n0,0,90000\n0,1,10000\n")
	stdout, stderr, _ := invoke(t.Context(), "counts", mild, worst)
	page, errs, code := invoke(t.Context(), "report", mild, worst)
	if !strings.Contains(stdout, "1.80 × the mean load in layer 0 of c.csv") || code != exitDone ||
		!strings.Contains(page, "1.80\u00a0× the mean load in layer 0") || !strings.Contains(page, " · worst/c.csv</p>") ||
		!strings.Contains(page, "…nnnnnnnnn-mild/c.csv: Expert 0 gets 1.20\u00a0× the mean load in layer 0. <small>recorded load over experts") {
		t.Errorf("exit %d, %q, %q\n%s\n%.3000s", code, stderr, errs, stdout, page)
	}
}
