package metrics

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// parseWith reads an output with rules of the user's.
func parseWith(output string, rules ...string) (Result, error) {
	var custom []Custom
	for _, s := range rules {
		c := require.Value(ParseCustom(s))
		custom = append(custom, c)
	}
	return Parse("output", strings.NewReader(output), custom)
}

// A rule whose match stops within the number, or before a prefix of the unit, is an error
// that shows the line. Zero stands for an error here.
func TestMatchesTheWholeNumber(t *testing.T) {
	for _, c := range []struct {
		rule, line string
		want       float64
	}{
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1150.5 tok/s", 1150.5},
		{`speed:tok/s:higher=speed ([0-9.,]+)`, "speed 1,150.5 tok/s", 1150.5},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1,150.5 tok/s", 0},
		{`speed:tok/s:higher=speed ([0-9.,]+)`, "speed 1,150,000 tok/s", 1150000},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1'150 tok/s", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1 150.7 tok/s", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1150 tok/sec", 1150},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1150 tok/min", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1150 tok/seconds", 1150},
		{`speed:tok/d:higher=speed ([0-9.]+)`, "speed 1150 tok/decon", 0},
		{`speed::higher=speed ([0-9.]+)`, "speed 1150 M, mean", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.1 ktps", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1_150 tok/s", 0},
		{`size:B:lower=size ([0-9.]+)`, "size 3 GB", 0},
		{`size:B:lower=size ([0-9.]+)`, "size 3 B", 3},
		{`time:ms:lower=took ([0-9.,]+)`, "took 1,5 ms", 0},
		{`time:ms:lower=took ([0-9.,]+)`, "took 0,500 ms", 0},
		{`time:ms:lower=took ([0-9.,]+)`, "took 1234,567 ms", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.15e3 tok/s", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.1x ktok/s", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.1k", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.1 k", 0},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1150 T=8", 1150},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 1.0 K tokens/s", 0},
		{`speed:ktok/s:higher=speed ([0-9.]+)`, "speed 1150 tok/s", 0},
		{`speed:ktok/s:higher=speed ([0-9.]+)`, "speed 1.1 ktok/s", 1.1},
		{`speed:tok/s:higher=[0-9.]+`, "speed 1150.5 tok/s", 1150.5},
		{`speed:tok/s:higher=speed ([0-9.]+)`, "speed 69 ms", 0},
		{`speed:tok/s:higher=[0-9.]+( tok)?`, "speed 69 tokens/sec", 0}, // a group of no number
		{`speed:tok/s:higher=[0-9.]+( fast)?`, "speed 69 tokens/sec", 69},
		{`speed:tok/s:higher=^([0-9.]+) tok`, "1150 tok/s", 1150},
		{`time:s:lower=took ([0-9.]+)`, "took 3.5 ms", 0.0035},
		{`time::lower=took ([0-9.]+)`, "took 2 s", 2000},
		{`time::lower=took ([0-9.]+)`, "took 2 rounds", 2},
		{`time:s:lower=took ([0-9.]+)`, "took 3.5 s.", 3.5},
		{`time:ms:lower=took ([0-9.]+)`, "took 3.5ms, ok", 3.5},
		{`speed:tok/s:higher=speed [0-9]+`, "no", 0},
		// Of several matches a rule takes the last or their median, and says of how many.
		{`speed:tok/s:higher=speed ([0-9]+)`, "speed 10\nspeed 20\nspeed 40", 0},
		{`speed:tok/s:higher:last=speed ([0-9]+)`, "speed 10\nspeed 20\nspeed 40", 40},
		{`speed:tok/s:higher:median=speed ([0-9]+)`, "speed 10\nspeed 20\nspeed 40", 20},
		{`speed:tok/s:higher=speed ([0-9]+)`, "speed 10\nspeed 10", 10},
	} {
		r, err := parseWith(c.line+"\n", c.rule)
		if c.want == 0 {
			if err == nil || c.line != "no" && !strings.Contains(err.Error(), c.line[:5]) {
				t.Errorf("%s of %q: %v, %v", c.rule, c.line, r.Metrics, err)
			}
		} else if err != nil || float64(r.Metrics[0].Value) != c.want ||
			strings.Contains(c.rule, "er:") != strings.Contains(strings.Join(r.Warnings, ""), "3 matches") {
			t.Errorf("%s of %q: %v, %q, %v", c.rule, c.line, r.Metrics, r.Warnings, err)
		}
	}
}

func TestCustomMetrics(t *testing.T) {
	in := "\x1b[32mspeed = 1,234.5 tok/s\x1b[0m\n{\n\"a\":\n{\"b\": [1, 7], \"x.y\": -2}}\n"
	r, err := parseWith(in, `speed:tok/s:higher=speed = ([\d.,]+)`, "wait:ms:lower=$.a.b[1]",
		"dotted::higher=$.a['x.y']", `second::lower=\[(\d)`) // a pattern sees the lines of objects, too
	require.NoError(t, err)
	for name, want := range map[string]float64{"speed": 1234.5, "wait": 7, "dotted": -2, "second": 1} {
		if m, ok := r.Metric(name); !ok || float64(m.Value) != want {
			t.Errorf("%s = %v, want %v", name, m.Value, want)
		}
	}
	if m, _ := r.Metric("wait"); m.HigherIsBetter || m.Unit != "ms" || r.Primary != "speed" || r.Format != "custom" {
		t.Errorf("%+v in %q with primary %q", m, r.Format, r.Primary)
	}
	for _, bad := range []string{"", "a", "a=", "=x", "a=x", "a:b=x", "a:b:c:d=x", "a:b:up=x", "a:b:higher:first=x",
		"a::lower=(", "a::lower=$.b..c", "a::lower=$.b["} {
		if _, err := ParseCustom(bad); err == nil {
			t.Errorf("ParseCustom(%q) passed", bad)
		}
	}
}

// A rule of the user's wins over every format: one that is incomplete, contradicts
// itself or stands beside another leaves the number that was asked for.
func TestCustomMetricWinsOverFormats(t *testing.T) {
	for name, in := range map[string]string{
		"one label of trtllm-bench": "Total Output Throughput (tokens/sec): 5\n",
		"two values":                "Throughput: 1 requests/s, 2 tokens/s\nThroughput: 3 requests/s, 2 tokens/s\n",
		"two formats":               "Throughput: 1 requests/s, 2 tokens/s\n" + workloadLine + "\n",
	} {
		r, err := parseWith(in+"my speed 42\n", `speed:tok/s:higher=my speed (\d+)`)
		if m, _ := r.Metric("speed"); err != nil || m.Value != 42 || r.Format != "custom" ||
			!strings.Contains(strings.Join(r.Warnings, "\n"), "only --metric was read: ") {
			t.Errorf("%s: %+v, error %v", name, r, err)
		}
	}
	r, err := parseWith(workloadLine+"\nmy speed 42\n", `speed:tok/s:higher=my speed (\d+)`)
	if m, ok := r.Metric("token_throughput"); err != nil || r.Primary != "speed" || !ok || m.Value != 12.5 {
		t.Errorf("beside a format: %+v, error %v", r, err)
	}
}

func TestWantedIsPositive(t *testing.T) {
	for value, want := range map[string]string{"0": "speed is 0", "-3": "speed is -3", "NaN": "want a positive",
		"inf": "want a positive", "1e-300": ""} {
		r := require.Value(parseWith("speed "+value, `speed:tok/s:higher=speed (\S+)`))
		if _, err := r.Wanted(""); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a value of %s: error %v, want %q", value, err, want)
		}
	}
	if _, err := (Result{Warnings: []string{"cut"}}).Wanted(""); err == nil || !strings.Contains(err.Error(), "metric: cut") {
		t.Errorf("without metrics: error %v", err)
	}
}

// Prompts are the work where each request generates one token.
func TestPrefillLoad(t *testing.T) {
	for generated, want := range map[float64]string{0: "output_throughput", 8: "total_throughput", 9: "output_throughput"} {
		r := Result{Work: map[string]float64{requests: 8, outputTokens: generated}, Metrics: make([]Metric, 2)}
		r.Metrics[0].Name, r.Metrics[1].Name = "output_throughput", "total_throughput"
		if got := r.preferred(); got != want {
			t.Errorf("8 requests, %v tokens: %s, want %s", generated, got, want)
		}
	}
}
