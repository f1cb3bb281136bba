package counts

import (
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
)

// ResultSchema is the version of the JSON of Result.
const ResultSchema = 2

// Result is the JSON of counts. Its lists repeat the source, so that each row stands alone.
type Result struct {
	SchemaVersion int              `json:"schema_version"`
	Kind          string           `json:"kind"` // always "counts"
	Threshold     float64          `json:"threshold"`
	Records       []ResultRecord   `json:"records"`
	Imbalance     []imbalance.Row  `json:"imbalance"`
	Summary       []Summary        `json:"summary"`
	Loads         []ResultLoad     `json:"loads"`
	Reported      []Reported       `json:"reported"`
	Warnings      []router.Warning `json:"warnings"`
}

// Of says what a row is of.
type Of struct {
	Source string `json:"source"`
	Phase  Phase  `json:"phase,omitempty"` // where the format separates phases
}

// ResultRecord is what a record says of itself.
type ResultRecord struct {
	Of
	Format     string        `json:"format"`
	Experts    router.OptInt `json:"experts"` // these three are undefined where the format does not say
	TopK       router.OptInt `json:"top_k"`
	Ranks      router.OptInt `json:"ranks"`
	Iterations int           `json:"iterations"`
	Layers     int           `json:"layers"`
	Slots      int64         `json:"slots"`
}

// Summary is the imbalance over the layers of a record.
type Summary struct {
	Of
	imbalance.Summary
}

// ResultLoad is the load of the experts of one layer of a record, over all its steps.
type ResultLoad struct {
	Of
	Layer int     `json:"layer"`
	Slots []int64 `json:"slots"` // by expert
}

// NewResult holds no record yet. JSON shows empty lists as such.
func NewResult(threshold float64) *Result {
	return &Result{
		SchemaVersion: ResultSchema, Kind: "counts", Threshold: threshold,
		Records: []ResultRecord{}, Imbalance: []imbalance.Row{}, Summary: []Summary{}, Loads: []ResultLoad{},
		Reported: []Reported{}, Warnings: []router.Warning{},
	}
}

// Add judges a record, each of its phases on its own.
func (res *Result) Add(r *Record, o Options) error {
	for _, r := range r.Phases() {
		layers, warnings, err := r.Imbalance(o)
		if err != nil {
			return err
		}
		if r.oneRank {
			layers = nil // which would say how many ranks there are
		}
		of := Of{r.Source, r.Phase}
		res.Records = append(res.Records, ResultRecord{of, r.Format, router.Known(r.Experts), router.Known(r.TopK),
			router.Known(r.Ranks), len(r.Iterations()), len(r.Layers()), r.Slots()})
		for i := range layers {
			l := &layers[i]
			if l.Source, l.Phase = r.Source, string(r.Phase); !r.layered {
				l.Layer = router.NoID
			}
			res.Imbalance = append(res.Imbalance, *l)
		}
		for _, level := range []string{router.LevelRank, router.LevelExpert} {
			if s := imbalance.Summarize(layers, level, imbalance.Load); s.Layers > 0 {
				res.Summary = append(res.Summary, Summary{of, s})
			}
		}
		loads := r.ByLayer()
		for _, layer := range slices.Sorted(maps.Keys(loads)) {
			res.Loads = append(res.Loads, ResultLoad{of, layer, loads[layer].PerExpert})
		}
		res.Reported = append(res.Reported, r.Reported...)
		res.Warnings = append(append(res.Warnings, r.Warnings...), warnings...)
	}
	return nil
}
