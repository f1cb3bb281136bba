package imbalance

import "github.com/moebalance/moebalance/router"

// The quantities of a Row.
const (
	Time = "time"
	Load = "load"
)

// Basis says how a number was obtained. The second and third are models.
type Basis string

// The bases.
const (
	Observed  Basis = "observed"  // in a range or operator of its own
	Inferred  Basis = "inferred"  // from the repeating pattern of launches
	Allocated Basis = "allocated" // a grouped kernel's time split by recorded load
	Recorded  Basis = "recorded"  // load that the engine counted
)

// Of says which kernels expert time adds up.
type Of string

// The kernels: GEMMs of routed experts alone, where they are recognized in every layer, for elementwise
// kernels over all slots take as long on every rank and would dilute their imbalance. Else all compute of
// the phase experts.
const (
	OfGEMM  Of = "gemm"
	OfPhase Of = "phase"
)

// ExpertTime is what tables and sentences call the time.
func (o Of) ExpertTime() string {
	if o == OfGEMM {
		return "expert GEMM time"
	}
	return "expert time"
}

// Row is the imbalance of one layer at one level: each number is computed per step
// and averaged over the steps that count and have any time or load, of time by how long
// the steps are, of load all steps alike. All are undefined without such a step.
type Row struct {
	Source       string        `json:"source,omitempty"` // of several
	Phase        string        `json:"phase,omitempty"`  // such as prefill and decode, where the source separates them
	Layer        router.OptInt `json:"layer"`            // undefined where no range names a layer and all count as one
	Level        string        `json:"level"`            // router.LevelRank or router.LevelExpert
	Quantity     string        `json:"quantity"`         // Time or Load
	Basis        Basis         `json:"basis"`
	Of           Of            `json:"of,omitempty"` // of the time of ranks only
	Steps        int           `json:"steps"`
	Parts        int           `json:"parts"`         // ranks or experts
	MaxOverMean  router.Number `json:"max_over_mean"` // in [1, parts]; of time Σ max / Σ mean over steps
	Imbalance    router.Number `json:"imbalance"`     // max_over_mean − 1
	MeanNS       router.Number `json:"mean_ns"`       // of a part per step; time only
	Balancedness router.Number `json:"balancedness"`  // of time 1/max_over_mean; of load the mean of mean/max
	Active       router.Number `json:"active"`        // parts with any time or load
	// Floor is the least max_over_mean that whole slots allow, undefined of time.
	Floor router.Number `json:"floor"`
	// NullMedian and NullP95 are for max_over_mean as it stands here, a mean over steps; of load of a known shape only.
	NullMedian router.Number `json:"null_median"`
	NullP95    router.Number `json:"null_p95"`
	Flagged    bool          `json:"flagged"` // see router.Flagged
	// the rank or expert that is the largest in most steps, the lowest one on a tie
	Worst      router.OptInt `json:"worst"`
	WorstSteps int           `json:"worst_steps"` // how many these are
}

// Furthest is the row of a level and quantity with the largest max/mean over its floor, as far as that is known, the
// first one on a tie; nil without any.
func Furthest(rows []Row, level, quantity string) (furthest *Row) {
	most := router.Number(0)
	for i := range rows {
		r, above := &rows[i], rows[i].MaxOverMean
		if r.Floor.Defined() {
			above /= r.Floor
		}
		if r.Level == level && r.Quantity == quantity && above > most { // NaN is not
			furthest, most = r, above
		}
	}
	return furthest
}

// Over averages the balance of the steps that count, whose parts have the numbers given; nil numbers them from 0. The
// row already holds its layer, level and quantity. For example, two ranks that take 30 and 10 ns in one step and 1
// and 3 ns in another have max/mean 33/22 of time. The floor of load follows from the counts at hand: counters of
// ranks and experts that were not read at the same moment differ. What random routing gives stays undefined, see
// Judge.
func (r Row) Over(steps []router.Balance, numbers []int, threshold float64) Row {
	none, weight, worst := router.Undefined(), router.Number(0), map[int]int{} // in how many steps a part is the largest
	for _, b := range steps {
		if r.Parts = b.Parts; b.Total == 0 {
			continue
		}
		w := router.Number(1)
		if r.Quantity == Time {
			w = b.Total / router.Number(b.Parts)
		}
		r.Steps++
		worst[b.Worst]++
		weight += w
		r.MaxOverMean += w * b.MaxOverMean
		r.Balancedness += w * b.Balancedness
		r.Active += w * router.Number(b.Active)
		r.Floor += w * router.Floor(int64(b.Total), b.Parts)
	}
	for _, v := range []*router.Number{&r.MaxOverMean, &r.Balancedness, &r.Active, &r.Floor} {
		*v /= weight // 0/0 is NaN: undefined
	}
	r.Imbalance, r.MeanNS, r.Worst = r.MaxOverMean-1, none, router.NoID
	if r.Quantity == Time {
		r.Floor, r.Balancedness, r.MeanNS = none, 1/r.MaxOverMean, weight/router.Number(r.Steps)
	}
	for part := range r.Parts {
		if worst[part] > r.WorstSteps {
			r.Worst, r.WorstSteps = router.OptInt(part), worst[part]
		}
	}
	if numbers != nil && r.Worst.Defined() {
		r.Worst = router.OptInt(numbers[r.Worst])
	}
	return r.Judge(none, none, threshold)
}

// Judge flags the row by what random routing gives as well: the median and 95th percentile of max/mean, averaged over
// the same number of steps.
func (r Row) Judge(median, p95 router.Number, threshold float64) Row {
	r.NullMedian, r.NullP95 = median, p95
	r.Flagged = router.Flagged(r.MaxOverMean, r.Floor, p95, threshold)
	return r
}

// Summary is the imbalance over layers: of load the mean of the layers, of time Σ max /
// Σ mean over layers, and the worst layer, the lowest one on a tie.
type Summary struct {
	Level            string        `json:"level"`
	Quantity         string        `json:"quantity"`
	Layers           int           `json:"layers"` // with any time or load
	Flagged          int           `json:"flagged_layers"`
	MaxOverMean      router.Number `json:"max_over_mean"`
	Imbalance        router.Number `json:"imbalance"`
	Balancedness     router.Number `json:"balancedness"`
	WorstLayer       router.OptInt `json:"worst_layer"` // undefined without any
	WorstMaxOverMean router.Number `json:"worst_max_over_mean"`
	WorstFloor       router.Number `json:"worst_floor"` // of that layer
}

// Summarize averages the layers of one level and quantity.
func Summarize(rows []Row, level, quantity string) Summary {
	s := Summary{Level: level, Quantity: quantity, WorstLayer: router.NoID, WorstMaxOverMean: router.Undefined(),
		WorstFloor: router.Undefined()}
	var weight router.Number
	for _, r := range rows {
		if r.Level != level || r.Quantity != quantity || !r.MaxOverMean.Defined() {
			continue
		}
		if s.Layers == 0 || r.MaxOverMean > s.WorstMaxOverMean {
			s.WorstLayer, s.WorstMaxOverMean, s.WorstFloor = r.Layer, r.MaxOverMean, r.Floor
		}
		w := router.Number(1)
		if quantity == Time {
			w = r.MeanNS * router.Number(r.Steps)
		}
		s.Layers++
		weight += w
		s.MaxOverMean += w * r.MaxOverMean
		s.Balancedness += w * r.Balancedness
		if r.Flagged {
			s.Flagged++
		}
	}
	s.MaxOverMean /= weight // 0/0 is NaN: undefined
	s.Balancedness /= weight
	if s.Imbalance = s.MaxOverMean - 1; quantity == Time {
		s.Balancedness = 1 / s.MaxOverMean
	}
	return s
}
