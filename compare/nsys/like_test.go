package nsys

import (
	"bytes"
	"context"
	"encoding/csv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/compare/nsys/like"
)

const testdata = "../../testdata"

// The profiler's own reports, as 'nsys stats' 2023.4.4 printed them.
func TestLikeNsysPrintsTheSameBytes(t *testing.T) {
	goldens, err := filepath.Glob(filepath.Join(testdata, "golden", "*.csv"))
	if err != nil || len(goldens) != 9 {
		t.Fatalf("want 9 golden reports, have %d (%v)", len(goldens), err)
	}
	exports := map[string]string{
		"gptoss-ep4-loop-normal":   "gptoss-ep4-loop/normal.sqlite",
		"gptoss-ep4-loop-perfect":  "gptoss-ep4-loop/perfect.sqlite",
		"gptoss-graph-node-normal": "gptoss-graph/node-normal.sqlite",
	}
	for _, golden := range goldens {
		name, report, _ := strings.Cut(strings.TrimSuffix(filepath.Base(golden), ".csv"), ".")
		t.Run(name+"/"+report, func(t *testing.T) {
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := like.Nsys(context.Background(), &got, filepath.Join(testdata, exports[name]), report, capture.Options{}); err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(got.Bytes(), want) {
				return
			}
			g, w := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
			for i := range w {
				if i >= len(g) || g[i] != w[i] {
					t.Fatalf("line %d of %d (have %d):\nwant %q\nhave %q", i+1, len(w), len(g), w[i], g[min(i, len(g)-1)])
				}
			}
			t.Fatalf("want %d lines, have %d", len(w), len(g))
		})
	}
}

// The profiler's statistics close an open range at the last time of any range,
// here 400: the call at 450 is outside, and the range lasts 400.
func TestLikeNsysClosesOpenRanges(t *testing.T) {
	f := newFixture().push(0, 300, 400, "b").work(0, 1, 10, 7, "k").work(0, 2, 450, 9, "k")
	f.sql("INSERT INTO NVTX_EVENTS VALUES (0,NULL,59,'a',NULL,%d,NULL,0)", tid(0, 1))
	var got bytes.Buffer
	if err := like.Nsys(context.Background(), &got, f.write(t, "open.sqlite"), "nvtx_gpu_proj_sum", capture.Options{}); err != nil {
		t.Fatal(err)
	}
	if rows := strings.Split(got.String(), "\n"); len(rows) != 4 || !strings.HasPrefix(rows[1], "a,PushPop,7,400,1,") {
		t.Errorf("have %q", rows)
	}
}

// The profiler's CSV does not escape names; ours reads back. A range without a name
// is a group of its own before that of the empty name, as kernels outside all
// ranges are, and its projection is not listed. Checked against the profiler's own
// program on a capture with such names.
func TestLikeNsysOddNames(t *testing.T) {
	f := newFixture()
	odd := []string{"", "a \"b\", c", "line\nbreak", "\"whole\"", "carriage\rreturn", " space"}
	for i, name := range odd {
		at := int64(100 * (i + 1))
		f.push(0, at, at+50, name).work(0, int64(i+1), at+1, 10, "k "+name)
	}
	f.sql("INSERT INTO NVTX_EVENTS VALUES (50,99,59,NULL,NULL,%d,NULL,0)", tid(0, 1)) // neither text nor textId
	path := f.work(0, 90, 60, 5, "in nameless").work(0, 91, 900, 20, "outside").write(t, "odd.sqlite")
	rows := func(report string) [][]string {
		var b bytes.Buffer
		if err := like.Nsys(context.Background(), &b, path, report, capture.Options{}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatalf("%s is no CSV: %v", report, err)
		}
		return rows[1:]
	}
	var kernels []string
	for _, row := range rows("nvtx_kern_sum") {
		kernels = append(kernels, row[0]+"|"+row[1]+"|"+row[12])
	}
	want := []string{
		"||outside", "|PushPop|in nameless", // no name; of one thread, the longest time first
		"|PushPop|k ", " space|PushPop|k  space", "\"whole\"|PushPop|k \"whole\"", "a \"b\", c|PushPop|k a \"b\", c",
		"carriage\rreturn|PushPop|k carriage\rreturn", "line\nbreak|PushPop|k line\nbreak",
	}
	if !slices.Equal(kernels, want) {
		t.Errorf("nvtx_kern_sum: want %q, have %q", want, kernels)
	}
	var projected []string
	for _, row := range rows("nvtx_gpu_proj_sum") {
		projected = append(projected, row[0])
	}
	slices.Sort(odd)
	if slices.Sort(projected); !slices.Equal(projected, odd) {
		t.Errorf("nvtx_gpu_proj_sum: want %q, have %q", odd, projected)
	}
}

// Ranges that cross, and two of one name around the same call. All were checked
// against the profiler's own program on a capture with such ranges.
func TestLikeNsysRangesThatCross(t *testing.T) {
	f := newFixture()
	for _, r := range []struct {
		start, end int64
		name       string
	}{{0, 100, "a"}, {10, 50, "b"}, {40, 82, "c"}, {45, 48, "d"}, {20, 60, "b"}} {
		f.sql("INSERT INTO NVTX_EVENTS VALUES (%d,%d,60,'%s',NULL,%d,NULL,0)", r.start, r.end, r.name, tid(0, 1))
	}
	// a range that says on which thread it ended counts nowhere, nor does an own name
	// for a domain without a row
	f.sql("INSERT INTO NVTX_EVENTS VALUES (1,99,60,'same',NULL,%d,%d,0)", tid(0, 1), tid(0, 1))
	f.sql("INSERT INTO NVTX_EVENTS VALUES (70,75,59,'e',NULL,%d,NULL,7)", tid(0, 1))
	path := f.work(0, 1, 46, 1000, "k").work(0, 2, 71, 10, "k").write(t, "cross.sqlite")
	var got bytes.Buffer
	if err := like.Nsys(context.Background(), &got, path, "nvtx_gpu_proj_sum", capture.Options{}); err != nil {
		t.Fatal(err)
	}
	// b [10, 50] and b [20, 60] are in a, c [40, 82] is in a, d is in all: its parent is
	// b [20, 60] or b [10, 50], both of 40, before c of 42; e is in c. Children: a has 3,
	// the two b 1 together, c 1.
	levels := map[string]string{}
	for _, line := range strings.Split(got.String(), "\n")[1:] {
		if cells := strings.Split(line, ","); len(cells) > 2 {
			levels[cells[0]] = cells[4] + " ranges, level " + cells[12] + ", children " + cells[13]
		}
	}
	want := map[string]string{
		"a": "1 ranges, level 0.0, children 3.0", "b": "2 ranges, level 1.0, children 0.5", "c": "1 ranges, level 1.0, children 1.0",
		"d": "1 ranges, level 2.0, children 0.0", "e": "1 ranges, level 2.0, children 0.0",
	}
	if !maps.Equal(levels, want) {
		t.Errorf("want %v, have %v", want, levels)
	}
	got.Reset()
	if err := like.Nsys(context.Background(), &got, path, "nvtx_kern_sum", capture.Options{}); err != nil {
		t.Fatal(err)
	}
	// both b hold kernel 1: one kernel, its time twice
	if want := "b,StartEnd,0,1,2,1,2000,1000.0,"; !strings.Contains(got.String(), want) {
		t.Errorf("no %q in\n%s", want, got.String())
	}
}
