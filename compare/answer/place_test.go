package answer

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
)

const shared = "../../../shared/captures/third-party/"

// What is known of a placement of DeepSeek-R1's experts beyond its own numbers: what it does left
// out, what copies are worth, and whether its time is of steps that nobody measured.
func TestBeyondThePlacement(t *testing.T) {
	paths, _ := filepath.Glob(shared + "lmsys/prefill*.json")
	table, err := os.Open(shared + "aiconfigurator-h200-wideep-moe.csv")
	if err != nil || len(paths) < 4 {
		t.Skip("no shared captures")
	}
	defer table.Close()
	var records []*counts.Record
	for _, path := range paths {
		r, err := counts.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	model := router.Model{Hidden: 7168, Intermediate: 2048, Shape: router.Shape{Experts: 256, TopK: 8}}
	windows := place.Whole(records)
	for _, tokens := range []float64{16384, 1e6} {
		if _, err := table.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		cost, err := place.FromTable("table.csv", table, model, tokens)
		if err != nil {
			t.Fatal(err)
		}
		res, err := place.Judge(windows, nil, place.Options{Ranks: []int{32}, Redundant: []int{0, 32},
			Threshold: 0.2, ExpertBytes: 1e9, Cost: cost})
		if err != nil {
			t.Fatal(err)
		}
		a := OfPlacement(res, "")
		said := strings.Join(beyond(res), "\n")
		if !strings.Contains(said, "on 4 kinds of windows left out in turn it reaches max/mean 1.03") ||
			!strings.Contains(said, "in 4 of 4 kinds of windows, for 54.0 GiB a rank") {
			t.Error(said)
		}
		const far = "Times are extrapolated: a step has 1000000 tokens, 2 to 16384 were measured."
		if (len(a.Reasons) > 0 && a.Reasons[0] == far) != (tokens == 1e6) {
			t.Errorf("%g tokens: %q", tokens, a.Reasons)
		}
		// nobody saves more than all of the time
		if low := a.Numbers[2].Low; !(low >= -1) || math.IsNaN(float64(a.Numbers[2].Value)) {
			t.Errorf("%g tokens: %+v", tokens, a.Numbers[2])
		}
	}
}

// Windows that share a caveat say it once.
func TestOneReasonForManyWindows(t *testing.T) {
	r, err := counts.Read("../../testdata/counts/logical-count.json")
	if err != nil {
		t.Fatal(err)
	}
	all := place.Whole([]*counts.Record{r, r, r})
	res, err := place.Judge(all[:1], all[1:], place.Options{Ranks: []int{2}, Redundant: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	said := beyond(res)
	if len(said) != 1 { // that the learned counts come again is the reason of the verdict
		t.Errorf("%q", said)
	}
}
