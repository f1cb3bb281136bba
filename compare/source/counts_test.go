package source

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
)

// The load of each expert is in the JSON, and gives the imbalance that stands beside it.
func TestLoadsOfExperts(t *testing.T) {
	record, err := counts.Read("../../testdata/deepseek-ep4-ranks/counts-normal")
	if err != nil {
		t.Fatal(err)
	}
	res := counts.NewResult(0.1)
	if err := res.Add(record, counts.Options{Threshold: 0.1}); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for i, l := range res.Loads {
		of := make([]float64, len(l.Slots))
		for e, n := range l.Slots {
			of[e], total = float64(n), total+n
		}
		at := slices.IndexFunc(res.Imbalance, func(r imbalance.Row) bool {
			return int(r.Layer) == l.Layer &&
				r.Level == "expert"
		})
		if have := floats.Max(of) / floats.Sum(of) * float64(len(of)); at < 0 || l.Layer != i || len(of) != 256 ||
			have != float64(res.Imbalance[at].MaxOverMean) {
			t.Errorf("layer %d: max/mean %v of %d experts", l.Layer, have, len(of))
		}
	}
	if len(res.Loads) != 2 || total != res.Records[0].Slots {
		t.Errorf("%d layers with %d slots, want %d", len(res.Loads), total, res.Records[0].Slots)
	}
}
