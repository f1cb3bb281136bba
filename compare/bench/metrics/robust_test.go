package metrics

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// What terminals, launchers and other programs do to an output must not change what is read from it.
func TestNoiseDoesNotMatter(t *testing.T) {
	const bar = "100%|███| 128/128 [00:09<00:00, 13.97it/s]"
	eachLine := func(before, after string) func(string) string {
		return func(text string) string {
			lines := strings.SplitAfter(text, "\n")
			for i, l := range lines {
				if trimmed := strings.TrimRight(l, "\n"); trimmed != "" {
					lines[i] = before + trimmed + after + l[len(trimmed):]
				}
			}
			return strings.Join(lines, "")
		}
	}
	noises := map[string]func(string) string{
		"byte order mark": func(s string) string { return "\xef\xbb\xbf" + s },
		"CRLF":            func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"color":           eachLine("\x1b[1;32m", "\x1b[0m"),
		"latin-1":         func(s string) string { return "dur\xe9e: 12\n\xff\xfe{\x80}\n{caf\xe9}\n" + s },
		"progress bar":    func(s string) string { return "  0%|   | 0/8\r 50%|#  | 4/8\r100%|###| 8/8\r" + s },
		"indent":          eachLine("     ", "   "),
		"bar at a title":  func(s string) string { return strings.ReplaceAll(s, "============ S", bar+"============ S") },
		"other text":      func(s string) string { return "import done\n{not json\n{'cut': \nKey, Value\n" + s + "\nbye: 5\n" },
	}
	for _, head := range []string{"2026-01-05T17:04:50.123456789Z stdout F ", "Jan 05 17:04:50 gpu01 vllm[1234]: ", "> ",
		"[pod/bench/client] ", "2026-01-05 17:04:50,123 - root - INFO - ", "2026-01-05 17:04:50.1 | INFO     | a:b:1 - ",
		"INFO:root:", "INFO: ", "0: ", "[1,0]<stdout>: ", "2026-01-05T17:04:50+00:00 ", "[2026-01-05 1:00] INFO a.py:10: "} {
		noises["head "+head+"ranks"] = eachLine(head, "") // no heads of whole documents either
	}
	for name, whole := range fixtures {
		want := require.Value(Parse("output", strings.NewReader(whole), nil))
		for noise, change := range noises {
			// A document over several lines comes from a file of its own.
			if alone := strings.Count(whole, "\n") > 1 && strings.ContainsAny(whole[:1], "{["); alone &&
				(noise == "color" || strings.HasSuffix(noise, "ranks")) {
				continue
			}
			got, err := Parse("output", strings.NewReader(change(whole)), nil)
			if !slices.EqualFunc(got.Metrics, want.Metrics, same) || !maps.Equal(got.Work, want.Work) || got.Format != want.Format ||
				got.Primary != want.Primary || err != nil {
				t.Errorf("%s with %s: %+v, error %v, want %+v", name, noise, got, err, want)
			}
		}
	}
}

// A cut output is refused, or says that it is cut, or has lost only lines that nobody can know were there.
func TestCutOutputs(t *testing.T) {
	for name, whole := range fixtures {
		full := require.Value(Parse("output", strings.NewReader(whole), nil))
		end := len(strings.TrimRight(whole, " \n"))
		for cut := 0; cut < end; cut += 1 + end/300 { // every byte of all but the longest
			got, err := Parse("output", strings.NewReader(whole[:cut]), nil)
			if err != nil || strings.Contains(strings.Join(got.Warnings, "\n"), "cut") || len(got.Warnings) > len(full.Warnings) || got.Format == "iteration-log" ||
				strings.HasSuffix(whole[:cut], "\n") || whole[cut] == '\n' {
				continue
			}
			for _, m := range got.Metrics {
				if whole, ok := full.Metric(m.Name); !ok || !equal(float64(whole.Value), float64(m.Value)) {
					t.Fatalf("%s cut at byte %d: %s = %v without a warning, want %v", name, cut, m.Name, m.Value, whole.Value)
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range fixtures {
		f.Add(text)
	}
	custom, err := ParseCustom(`latency:ms:lower=latency\D+([\d.]+)`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data string) {
		for _, wanted := range [][]Custom{nil, {custom}} {
			got, err := ParseRuns("output", strings.NewReader(data), wanted)
			if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("error of several lines: %q", err)
			}
			for _, r := range got {
				seen := map[string]bool{}
				for _, m := range r.Metrics {
					if seen[m.Name] {
						t.Errorf("metric %q twice", m.Name)
					}
					seen[m.Name] = true
				}
			}
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("results do not encode: %v", err)
			}
		}
	})
}
