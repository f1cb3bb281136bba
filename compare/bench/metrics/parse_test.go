package metrics

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
)

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open("../../../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestParseRunsReadsTheRecordedPairs(t *testing.T) {
	runs, err := ParseRuns("output", open(t, "pairs-abba.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 12 {
		t.Fatalf("have %d runs, want 12", len(runs))
	}
	// A B, B A, …: the order the launches ran in.
	for i, r := range runs {
		want := i%4 == 1 || i%4 == 2
		if !r.Proof.Claimed || r.Proof.Perfect != want || r.Proof.Ranks != 4 {
			t.Errorf("run %d: proof %+v, want perfect %v on 4 ranks", i, r.Proof, want)
		}
	}
	m, ok := runs[0].Metric("token_throughput")
	if !ok || m.Value != 399378.73984891246 || m.Unit != "tok/s" || !m.HigherIsBetter || runs[0].Primary != m.Name {
		t.Errorf("first run: %+v, primary %q", m, runs[0].Primary)
	}
	if len(runs[0].Steps) != 0 {
		t.Errorf("warm-up iterations became %d steps", len(runs[0].Steps))
	}
}

func TestParseRefuses(t *testing.T) {
	line := `{"perfect_router": false, "ranks": 2, "tokens_per_rank": 3, "tokens_per_second": 12.5}`
	for name, c := range map[string]struct{ in, want string }{
		"empty":      {"", "have an empty output"},
		"no result":  {"hello\nworld\n", "in 2 lines"},
		"cut object": {line[:40], "line 1: want a whole JSON object, have one that ends before"},
		"two launches": {line + "\n" + strings.Replace(line, "12.5", "13", 1),
			"line 2 (moebalance-workload): want token_throughput = 12.5 (line 1) as before, have 13"},
		"duplicate key": {strings.Replace(line, "}", `, "ranks": 4}`, 1),
			`line 1 (moebalance-workload): want one value of key "ranks", have two that differ`},
		"text for number": {strings.Replace(line, "12.5", `"fast"`, 1), "want a number"},
		"utf-16":          {"\xff\xfeh\x00", "UTF-16"},
	} {
		_, err := Parse("output", strings.NewReader(c.in), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestCustomMetrics(t *testing.T) {
	var custom []Custom
	for _, s := range []string{`speed:tok/s=speed = ([\d.,]+)`, "wait:ms:lower=$.a.b[1]", "dotted::higher=$.a['x.y']"} {
		c, err := ParseCustom(s)
		if err != nil {
			t.Fatal(err)
		}
		custom = append(custom, c)
	}
	rule, err := ParseCustom(`second::lower=\[(\d)`) // a pattern sees the lines of objects, too
	if err != nil {
		t.Fatal(err)
	}
	custom = append(custom, rule)
	in := "\x1b[32mspeed = 1,234.5 tok/s\x1b[0m\n{\n\"a\":\n{\"b\": [1, 7], \"x.y\": -2}}\n"
	r, err := Parse("output", strings.NewReader(in), custom)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"speed": 1234.5, "wait": 7, "dotted": -2, "second": 1} {
		if m, ok := r.Metric(name); !ok || float64(m.Value) != want {
			t.Errorf("%s = %v, want %v", name, m.Value, want)
		}
	}
	if m, _ := r.Metric("wait"); m.HigherIsBetter || m.Unit != "ms" || r.Primary != "speed" || r.Format != "custom" {
		t.Errorf("%+v in %q with primary %q", m, r.Format, r.Primary)
	}
	if _, err := Parse("output", strings.NewReader("speed = 1\nspeed = 2\n"), custom[:1]); err == nil ||
		!errors.Is(err, errTwice) {
		t.Errorf("two values of one metric: error %v", err)
	}
	for _, bad := range []string{"", "a", "a=", "=x", "a:b:c:d=x", "a:b:up=x", "a=(", "a=$.b..c", "a=$.b["} {
		if _, err := ParseCustom(bad); err == nil {
			t.Errorf("ParseCustom(%q) passed", bad)
		}
	}
}

// A rule of the user's wins over every format: one that is incomplete, contradicts
// itself or stands beside another leaves the number that was asked for.
func TestCustomMetricWinsOverFormats(t *testing.T) {
	rule, err := ParseCustom(`speed:tok/s=my speed (\d+)`)
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]string{
		"one label of trtllm-bench": "Total Output Throughput (tokens/sec): 5\n",
		"two values":                "Request Throughput (req/sec): 5\nRequest Throughput (req/sec): 6\n",
		"two formats":               "Throughput: 1 requests/s, 2 tokens/s\nAvg latency: 3 seconds\n",
	} {
		if _, err := Parse("output", strings.NewReader(in), nil); err == nil {
			t.Errorf("%s: passed without a rule", name)
		}
		r, err := Parse("output", strings.NewReader(in+"my speed 42\n"), []Custom{rule})
		if m, _ := r.Metric("speed"); err != nil || m.Value != 42 || r.Format != "custom" ||
			!strings.Contains(strings.Join(r.Warnings, "\n"), "only --metric was read: ") {
			t.Errorf("%s: %+v, error %v", name, r, err)
		}
	}
}

// Of a time less is better. Where neither unit nor name tells, a direction is asked for.
func TestCustomDirection(t *testing.T) {
	for rule, want := range map[string]string{
		"x:ms=(1)": "lower", "x:s=(1)": "lower", "x:s/it=(1)": "lower", "ttft_p99=(1)": "lower", "latency=(1)": "lower",
		"total_ms=(1)": "lower",
		"x:tok/s=(1)":  "higher", "x:req/sec=(1)": "higher", "x:tps=(1)": "higher", "throughput=(1)": "higher",
		"speed=(1)":             "higher",
		"latency:ms:higher=(1)": "higher", "x::lower=(1)": "lower", "x=(1)": "", "x:tokens=(1)": "", "x::=(1)": "",
	} {
		c, err := ParseCustom(rule)
		if got := map[bool]string{true: "higher", false: "lower"}[c.HigherIsBetter]; err == nil && got != want ||
			(err != nil) != (want == "") {
			t.Errorf("%s: %s, error %v; want %q", rule, got, err, want)
		}
	}
}

func TestWantedIsPositive(t *testing.T) {
	rule, err := ParseCustom(`speed:tok/s=speed (\S+)`)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"0": "speed is 0", "-3": "speed is −3.00", "NaN": "not a number",
		"inf": "not a number", "1e-300": ""} {
		r, err := Parse("output", strings.NewReader("speed "+value), []Custom{rule})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Wanted(""); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a value of %s: error %v, want %q", value, err, want)
		}
	}
	if _, err := (Result{Format: "f", Metrics: []Metric{{gain.Metric{Name: "a"}, 1},
		{gain.Metric{Name: "b"}, 1}}}).Wanted("c"); err == nil || !strings.Contains(err.Error(), "want one of a, b") {
		t.Errorf("error %v", err)
	}
}

// A client that saves every request may write its totals last.
func TestTotalsAfterLongLists(t *testing.T) {
	texts := strings.Repeat(`"a text that nobody reads", `, 2*maxElements)
	r, err := Parse("output",
		strings.NewReader(`{"generated_texts": [`+texts+`""], "completed": 3, "duration": 2, "request_throughput": 1.5, "output_throughput": 70}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := r.Metric("output_throughput"); !ok || m.Value != 70 || r.Work.Requests != Exactly(3) {
		t.Errorf("%+v of %+v", m, r.Work)
	}
}

func FuzzParseCustom(f *testing.F) {
	for _, s := range []string{`speed:tok/s=speed = ([\d.,]+)`, "wait:ms:lower=$.a.b[1]", `dotted=$['x.y']["z"]`,
		"a:b:c:d=x", "=$.", "n=("} {
		f.Add(s, "speed = 1,5\n{\"a\": {\"b\": [0, 1e3]}, \"x.y\": {\"z\": 2}}\n")
	}
	f.Fuzz(func(t *testing.T, rule, output string) {
		c, err := ParseCustom(rule)
		if err != nil {
			return
		}
		if c.Name == "" || (c.Pattern == nil) == (c.Path == nil) {
			t.Errorf("%q makes %+v", rule, c)
		}
		if r, err := Parse("output", strings.NewReader(output), []Custom{c}); err == nil {
			if m, ok := r.Metric(c.Name); !ok || r.Primary != c.Name || m.Unit != c.Unit ||
				m.HigherIsBetter != c.HigherIsBetter {
				t.Errorf("%q found %+v in %+v", rule, m, r)
			}
		}
	})
}
