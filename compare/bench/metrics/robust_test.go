package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func fixtureFiles(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("../../../testdata/outputs/*")
	if err != nil || len(paths) < 20 {
		t.Fatalf("fixtures: %v, error %v", paths, err)
	}
	files := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(p)] = b
	}
	return files
}

// What terminals, launchers and other programs do to an output must not change
// what is read from it.
func TestNoiseDoesNotMatter(t *testing.T) {
	eachLine := func(change func(string) string) func([]byte) []byte {
		return func(b []byte) []byte {
			lines := strings.Split(string(b), "\n")
			for i, l := range lines {
				if l != "" {
					lines[i] = change(l)
				}
			}
			return []byte(strings.Join(lines, "\n"))
		}
	}
	noises := map[string]func([]byte) []byte{
		"byte order mark": func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) },
		"CRLF":            func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) },
		"color":           eachLine(func(l string) string { return "\x1b[1;32m" + l + "\x1b[0m" }),
		"srun ranks":      eachLine(func(l string) string { return "0: " + l }),
		"mpirun ranks":    eachLine(func(l string) string { return "[1,0]<stdout>: " + l }),
		"latin-1": func(b []byte) []byte {
			return append([]byte("dur\xe9e: 12\n\xff\xfe{\x80}\n{caf\xe9}\n"), b...)
		},
		"progress bar": func(b []byte) []byte {
			return append([]byte("  0%|   | 0/8\r 50%|#  | 4/8\r100%|###| 8/8\r"),
				b...)
		},
		"other text": func(b []byte) []byte {
			return append(append([]byte("import done\n{not json\n{'cut': \n"), b...), "\nbye: 5\n"...)
		},
	}
	files := fixtureFiles(t)
	for name, want := range fixtures {
		whole := files[name]
		for noise, change := range noises {
			// A document over several lines comes from a file of its own.
			if bytes.HasPrefix(whole, []byte("{\n")) && (noise == "color" || strings.HasSuffix(noise, "ranks")) {
				continue
			}
			t.Run(name+"/"+noise, func(t *testing.T) {
				got, err := Parse("output", bytes.NewReader(change(whole)), nil)
				if err != nil {
					t.Fatal(err)
				}
				want.warnings = nil // line numbers move
				checkResult(t, got, want)
			})
		}
	}
}

// A cut output is refused, or says that it is cut, or has lost only lines that
// nobody can know were there.
func TestCutOutputs(t *testing.T) {
	for name, whole := range fixtureFiles(t) {
		full, fullErr := Parse("output", bytes.NewReader(whole), nil)
		end := len(bytes.TrimRight(whole, " \n"))
		for cut := 0; cut < end; cut += 1 + end/300 { // every byte of all but the longest
			got, err := Parse("output", bytes.NewReader(whole[:cut]), nil)
			if err != nil || fullErr != nil {
				continue
			}
			lines := bytes.HasSuffix(whole[:cut], []byte("\n")) || bytes.HasPrefix(whole[cut:], []byte("\n"))
			if len(got.Warnings) > len(full.Warnings) || lines || len(got.Steps) > 0 {
				continue
			}
			for _, m := range got.Metrics {
				if whole, ok := full.Metric(m.Name); !ok || !sameNumber(whole.Value, m.Value) {
					t.Fatalf("%s cut at byte %d: %s = %v without a warning, want %v", name, cut, m.Name, m.Value,
						whole.Value)
				}
			}
		}
	}
}

// repeated yields a text over and over without holding it.
type repeated struct {
	text []byte
	left int64
	at   int
	each func()
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	r.each()
	n := copy(p[:min(int64(len(p)), r.left)], r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	r.left -= int64(n)
	return n, nil
}

// Memory must not grow with the output: rows, text, one endless progress bar,
// one endless line, and one endless list in a document.
func TestMemoryStaysConstant(t *testing.T) {
	if testing.Short() {
		t.Skip("reads long outputs")
	}
	const size, limit = 24 << 20, 20 << 20
	files := fixtureFiles(t)
	rows := files["iteration-log.txt"]
	rows = rows[:bytes.LastIndexByte(rows, '\n')+1]
	result := files["vllm-throughput.txt"]
	for name, in := range map[string]struct{ before, text, after string }{
		"iteration rows": {"", string(rows), ""},
		"text":           {"", string(files["trtllm-bench-c.txt"][:1000]), ""},
		"progress bar":   {"", " 50%|#####     | 4/8 [00:01<00:01]\r", ""},
		"one line":       {"", "no end in sight ", ""},
		"one list":       {`{"errors": [0`, `, "a text", 1.5`, "]}"},
		"long texts":     {`{"texts": ["x"`, `, "` + strings.Repeat("words ", 600) + `"`, "]}"},
		"one string":     {`{"text": "`, `words and words `, `"}`},
	} {
		runtime.GC()
		var start, now runtime.MemStats
		runtime.ReadMemStats(&start)
		var peak uint64
		calls := 0
		long := &repeated{text: []byte(in.text), left: size / int64(len(in.text)) * int64(len(in.text)), each: func() {
			if calls++; calls%64 == 0 {
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc-min(now.HeapAlloc, start.HeapAlloc))
			}
		}}
		r, err := Parse("output", io.MultiReader(strings.NewReader(in.before), long, strings.NewReader(in.after+"\n"),
			bytes.NewReader(result)), nil)
		if err != nil || r.Format != "vllm-throughput/stdout" {
			t.Errorf("%s: format %q, error %v", name, r.Format, err)
		}
		if peak > limit {
			t.Errorf("%s: %d MiB of heap for %d MiB of output, want at most %d", name, peak>>20, size>>20, limit>>20)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, b := range fixtureFiles(f) {
		f.Add(b)
	}
	f.Add([]byte(`{"perfect_router": true, "ranks": 2, "tokens_per_rank": 3, "tokens_per_second": 12.5, "iteration_ms": [1, NaN]}`))
	custom, err := ParseCustom(`latency:ms:lower=latency\D+([\d.]+)`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, wanted := range [][]Custom{nil, {custom}} {
			got, err := Parse("output", bytes.NewReader(data), wanted)
			if err != nil {
				if strings.ContainsAny(err.Error(), "\n\r") {
					t.Errorf("error of several lines: %q", err)
				}
				continue
			}
			seen := map[string]bool{}
			for _, m := range got.Metrics {
				if seen[m.Name] {
					t.Errorf("metric %q twice", m.Name)
				}
				seen[m.Name] = true
			}
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("result does not encode: %v", err)
			}
			again, err := Parse("output", bytes.NewReader(data), wanted)
			if err != nil || fmt.Sprint(again) != fmt.Sprint(got) {
				t.Errorf("parsed again: %v (%v), first %v", again, err, got)
			}
		}
		_, _ = ParseRuns("output", bytes.NewReader(data), nil)
	})
}
