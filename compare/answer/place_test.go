package answer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
)

// What is known of a placement of DeepSeek-R1's experts beyond its own numbers: what EPLB does
// on the same kinds of windows left out.
func TestBeyondThePlacement(t *testing.T) {
	paths, _ := filepath.Glob("../../../shared/captures/third-party/lmsys/prefill*.json")
	if len(paths) < 4 {
		t.Skip("no shared captures")
	}
	var records []*counts.Record
	for _, path := range paths {
		r, err := counts.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	res, err := place.Judge(place.Whole(records), nil, place.Options{Ranks: []int{32}, Redundant: []int{0, 32},
		Threshold: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(beyond(res), "\n")
	if !strings.Contains(said, "it reaches max/mean 1.03") || !strings.Contains(said, ", EPLB 1.11") {
		t.Error(said)
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
