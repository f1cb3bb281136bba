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
