package nsys

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
			if err := LikeNsys(context.Background(), &got, filepath.Join(testdata, exports[name]), report, Options{}); err != nil {
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
	if err := LikeNsys(context.Background(), &got, f.write(t, "open.sqlite"), "nvtx_gpu_proj_sum", Options{}); err != nil {
		t.Fatal(err)
	}
	if rows := strings.Split(got.String(), "\n"); len(rows) != 4 || !strings.HasPrefix(rows[1], "a,PushPop,7,400,1,") {
		t.Errorf("have %q", rows)
	}
}
