package imbalance

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

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

// Of is what the time of experts is the time of.
type Of string

// GEMMs of routed experts alone, where they are recognized in every layer: elementwise
// kernels over all slots take as long on every rank and would dilute their imbalance.
// Else all compute of the phase experts.
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
	Layer        router.OptInt `json:"layer"`    // undefined where no range names a layer and all count as one
	Level        string        `json:"level"`    // router.LevelRank or router.LevelExpert
	Quantity     string        `json:"quantity"` // Time or Load
	Basis        Basis         `json:"basis"`
	Of           Of            `json:"of,omitempty"` // of the time of ranks only
	Steps        int           `json:"steps"`
	Dropped      int           `json:"dropped_steps"` // steps without any time or load, left out
	Parts        int           `json:"parts"`         // ranks or experts
	MaxOverMean  router.Number `json:"max_over_mean"` // in [1, parts]; of time Σ max / Σ mean over steps
	Imbalance    router.Number `json:"imbalance"`     // max_over_mean − 1
	MeanNS       router.Number `json:"mean_ns"`       // of a part per step; time only
	Balancedness router.Number `json:"balancedness"`  // of time 1/max_over_mean; of load the mean of mean/max
	Active       router.Number `json:"active"`        // parts with any time or load
	// Floor is the least max_over_mean that whole slots allow, undefined of time.
	Floor      router.Number `json:"floor"`
	NullMedian router.Number `json:"null_median"`
	// both of max_over_mean as it stands here: of a mean over as many steps; load of a known shape only
	NullP95    router.Number `json:"null_p95"`
	NullActive router.Number `json:"null_active"` // load of experts only
	Flagged    bool          `json:"flagged"`     // see router.Flagged
	// the rank or expert that is the largest in most steps, the lowest one on a tie
	Worst      router.OptInt `json:"worst"`
	WorstSteps int           `json:"worst_steps"` // in how many
}

// BasisOf is what all rows together rest on: Inferred where a layer of any is.
func BasisOf(rows []Row) Basis {
	if slices.ContainsFunc(rows, func(r Row) bool { return r.Basis == Inferred }) {
		return Inferred
	}
	return Observed
}

// AboveFloor is max/mean over its floor, as far as that is known.
func (r *Row) AboveFloor() router.Number {
	if r.Floor.Defined() {
		return r.MaxOverMean / r.Floor
	}
	return r.MaxOverMean
}

// SourceRow is a Row of one of several sources.
type SourceRow struct {
	Source string `json:"source"`
	Phase  string `json:"phase,omitempty"` // of inference, such as prefill and decode, where the source separates them
	Row
}

// row is what a Row and a SourceRow share.
func (r *Row) row() *Row { return r }

// Furthest is the row of a level and quantity that is furthest above its floor, the first one
// on a tie; nil without any.
func Furthest[R any, P interface {
	*R
	row() *Row
}](rows []R, level, quantity string) (furthest *R) {
	for i := range rows {
		r := P(&rows[i]).row()
		if r.Level == level && r.Quantity == quantity && r.MaxOverMean.Defined() &&
			(furthest == nil || r.AboveFloor() > P(furthest).row().AboveFloor()) {
			furthest = &rows[i]
		}
	}
	return furthest
}

// LayerMean averages the balance of one layer at one level over steps.
type LayerMean struct {
	sum    Row           // the running sums; counts and names as they will stand
	weight router.Number // of all steps together
	worst  []int         // steps in which each part is the largest
}

// NewLayerMean starts the mean of a layer.
func NewLayerMean(layer router.OptInt, level, quantity string, basis Basis) *LayerMean {
	return &LayerMean{sum: Row{Layer: layer, Level: level, Quantity: quantity, Basis: basis}}
}

// AddTime adds one step: the time of each rank or expert.
func (m *LayerMean) AddTime(parts []float64) {
	b := router.BalanceOf(parts)
	m.add(b, router.Number(b.Total)/router.Number(max(b.Parts, 1)), router.Undefined(), router.Undefined())
}

// AddLoad adds one step: the balance of its load, and the number of active experts that
// random routing gives.
// The floor is of the counts at hand: counters of ranks and experts that were
// not read at the same moment differ.
func (m *LayerMean) AddLoad(b router.Balance, active router.Number) {
	m.add(b, 1, router.Floor(int64(b.Total), b.Parts), active)
}

func (m *LayerMean) add(b router.Balance, weight, floor, active router.Number) {
	s := &m.sum
	s.Parts = b.Parts
	if b.Total == 0 {
		s.Dropped++
		return
	}
	if m.worst == nil {
		m.worst = make([]int, b.Parts)
	}
	s.Steps++
	m.worst[b.Worst]++
	m.weight += weight
	s.MaxOverMean += weight * b.MaxOverMean
	s.Balancedness += weight * b.Balancedness
	s.Active += weight * router.Number(b.Active)
	s.Floor += weight * floor
	s.NullActive += weight * active
}

// Null is the max/mean of a mean over as many steps that random routing gives.
type Null struct{ Median, P95 router.Number }

// NoNull is the null of times, and of load of an unknown shape.
func NoNull() Null { return Null{router.Undefined(), router.Undefined()} }

// Row is the mean over the steps added so far. numbers are the parts' numbers; nil
// numbers them from 0.
func (m *LayerMean) Row(threshold float64, null Null, numbers []int) Row {
	r := m.sum
	for _, v := range []*router.Number{&r.MaxOverMean, &r.Balancedness, &r.Active, &r.Floor, &r.NullActive} {
		*v /= m.weight // 0/0 is NaN: undefined
	}
	r.Imbalance, r.MeanNS = r.MaxOverMean-1, router.Undefined()
	if r.Quantity == Time {
		r.Balancedness, r.MeanNS = 1/r.MaxOverMean, m.weight/router.Number(r.Steps)
	}
	r.NullMedian, r.NullP95 = null.Median, null.P95
	r.Flagged = router.Flagged(r.MaxOverMean, r.Floor, r.NullP95, threshold)
	r.Worst = router.NoID
	for part, steps := range m.worst {
		if steps > r.WorstSteps {
			r.Worst, r.WorstSteps = router.OptInt(part), steps
		}
	}
	if numbers != nil && r.Worst.Defined() {
		r.Worst = router.OptInt(numbers[r.Worst])
	}
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
