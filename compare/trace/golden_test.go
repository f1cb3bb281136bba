package trace

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// halfUp rounds to a tenth as SQLite does; undefined is 0 there.
func halfUp(n router.Number) float64 {
	if !n.Defined() {
		return 0
	}
	return math.Round(10*n.Float64()) / 10
}

const testdata = "../../testdata"

// The sums of kernels are those that 'nsys stats' 2023.4.4 printed.
func TestKernelsAreTheProfilers(t *testing.T) {
	for name, export := range map[string]string{
		"gptoss-ep4-loop-normal":   "gptoss-ep4-loop/normal.sqlite",
		"gptoss-ep4-loop-perfect":  "gptoss-ep4-loop/perfect.sqlite",
		"gptoss-graph-node-normal": "gptoss-graph/node-normal.sqlite",
	} {
		f := require.Value(os.Open(filepath.Join(testdata, "golden", name+".cuda_gpu_kern_sum.csv")))
		defer f.Close()
		rows := require.Value(csv.NewReader(f).ReadAll())
		var want, have []string
		for _, row := range rows[1:] { // but for the share of the time
			want = append(want, strings.Join(row[1:], ","))
		}
		for _, k := range mustRead(t, Options{}, filepath.Join(testdata, export)).Kernels {
			have = append(have, fmt.Sprintf("%d,%d,%.1f,%.1f,%d,%d,%.1f,%s",
				k.TotalNS, k.Instances, halfUp(k.MeanNS), halfUp(k.MedianNS), k.MinNS, k.MaxNS, halfUp(k.StdDevNS),
				k.Name))
		}
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(want, have) || len(want) < 10 {
			t.Errorf("%s: %d rows, want %d:\n%.1000q\nwant\n%.1000q", name, len(have), len(want), have, want)
		}
	}
}
