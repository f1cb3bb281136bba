package counts

import (
	"errors"
	"fmt"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/chance"
)

// Options says how a record is judged. The zero value takes everything from the
// record, with a threshold of 0.
type Options struct {
	Ranks     int        // EP size, in place of the record's; experts contiguous unless Placement is given
	Placement *Placement // where the experts are, in place of the record's
	// Shape supplies the model's top-k and groups, which change what chance gives;
	// nil takes the record's top-k and no groups. Its experts must be the record's.
	Shape     *router.Shape
	Threshold float64 // of router.Flagged, as a fraction
	Null      chance.Options
}

// ErrOptions is wrapped by the errors about options that contradict the record.
var ErrOptions = errors.New("judging")

func (r *Record) contradicted(err error) error {
	return fmt.Errorf("%w %q: %w", ErrOptions, r.Source, err)
}

// LayerBalance is the balance of one layer at one level: each number is computed
// per step and then averaged over the steps with any load, so that a busy rank
// that alternates does not cancel. All are undefined without such a step.
type LayerBalance struct {
	Layer        int           `json:"layer"`
	Level        string        `json:"level"` // "rank" or "expert"
	Steps        int           `json:"steps"`
	Dropped      int           `json:"dropped_steps"` // steps without any load, left out
	Parts        int           `json:"parts"`         // ranks or experts
	MaxOverMean  router.Number `json:"max_over_mean"`
	Imbalance    router.Number `json:"imbalance"`    // max_over_mean − 1
	Balancedness router.Number `json:"balancedness"` // mean of mean/max, not 1/max_over_mean
	CV           router.Number `json:"cv"`
	Gini         router.Number `json:"gini"`
	Active       router.Number `json:"active"` // parts with any load
	Floor        router.Number `json:"floor"`  // of max_over_mean
	NullMedian   router.Number `json:"null_median"`
	NullP95      router.Number `json:"null_p95"`    // both of max_over_mean as it stands here: of a mean over as many steps
	NullActive   router.Number `json:"null_active"` // expert level only
	Flagged      bool          `json:"flagged"`     // see router.Flagged
	Worst        router.Whole  `json:"worst"`       // the part that is the largest in most steps, the lowest one on a tie; undefined without any
	WorstSteps   int           `json:"worst_steps"` // in how many
}

// Summary is the balance over layers: the mean of the layers' means.
type Summary struct {
	Level        string        `json:"level"`
	Layers       int           `json:"layers"`  // with any load
	Flagged      int           `json:"flagged"` // how many of them
	MaxOverMean  router.Number `json:"max_over_mean"`
	Imbalance    router.Number `json:"imbalance"`
	Balancedness router.Number `json:"balancedness"`
	WorstLayer   router.Whole  `json:"worst_layer"` // of the largest max_over_mean, the lowest one on a tie; undefined without any
	WorstMax     router.Number `json:"worst_max_over_mean"`
	WorstFloor   router.Number `json:"worst_floor"` // of that layer
}

// Imbalance computes the balance of every layer at the levels that the record
// allows, rank before expert, in the order of the layers. The error wraps
// ErrOptions where the options contradict the record; warnings say what could not
// be compared.
func (r *Record) Imbalance(o Options) ([]LayerBalance, []router.Warning, error) {
	j, err := newJudge(r, o)
	if err != nil {
		return nil, nil, r.contradicted(err)
	}
	means := map[int][2]*mean{}
	for _, layer := range r.Layers() {
		means[layer] = [...]*mean{newMean(layer, router.LevelRank), newMean(layer, router.LevelExpert)}
	}
	for s, err := range r.Steps() {
		if err != nil {
			return nil, nil, err
		}
		m := means[s.Layer]
		if err := j.step(s, m[0], m[1]); err != nil {
			return nil, nil, r.contradicted(fmt.Errorf("layer %d: %w", s.Layer, err))
		}
	}
	var out []LayerBalance
	for _, layer := range r.Layers() {
		for _, m := range means[layer] {
			if m.Parts > 0 {
				out = append(out, m.balance(o.Threshold))
			}
		}
	}
	return out, j.warnings, nil
}

// Summarize averages the layers of one level.
func Summarize(layers []LayerBalance, level string) Summary {
	s := Summary{
		Level: level, WorstLayer: router.None, WorstMax: router.Undefined(), WorstFloor: router.Undefined(),
		MaxOverMean: router.Undefined(), Imbalance: router.Undefined(), Balancedness: router.Undefined(),
	}
	var most, balancedness router.Number
	for _, l := range layers {
		if l.Level != level || l.Steps == 0 {
			continue
		}
		s.Layers++
		most += l.MaxOverMean
		balancedness += l.Balancedness
		if l.Flagged {
			s.Flagged++
		}
		if !s.WorstLayer.Defined() || l.MaxOverMean > s.WorstMax {
			s.WorstLayer, s.WorstMax, s.WorstFloor = router.Whole(l.Layer), l.MaxOverMean, l.Floor
		}
	}
	if n := router.Number(s.Layers); n > 0 {
		s.MaxOverMean, s.Imbalance, s.Balancedness = most/n, most/n-1, balancedness/n
	}
	return s
}

// mean accumulates one layer at one level.
type mean struct {
	LayerBalance
	worst  []int                  // steps in which each part is the largest
	chance []*chance.Distribution // of each step
}

func newMean(layer int, level string) *mean {
	return &mean{LayerBalance: LayerBalance{Layer: layer, Level: level, Worst: router.None}}
}

// add adds one step; the zero values of LayerBalance serve as running sums. The
// floor is that of the counts at hand: counters of ranks and experts that were not
// read at the same moment differ.
func (m *mean) add(b router.Balance, chance *chance.Distribution, active router.Number) {
	m.Parts = b.Parts
	if b.Total == 0 {
		m.Dropped++
		return
	}
	if m.worst == nil {
		m.worst = make([]int, b.Parts)
	}
	m.Steps++
	m.worst[b.Worst]++
	m.MaxOverMean += b.MaxOverMean
	m.Balancedness += b.Balancedness
	m.CV += b.CV
	m.Gini += b.Gini
	m.Active += router.Number(b.Active)
	m.Floor += router.Floor(int64(b.Total), b.Parts)
	m.NullActive += active
	m.chance = append(m.chance, chance)
}

// balance divides the sums by the steps.
func (m *mean) balance(threshold float64) LayerBalance {
	out, n := m.LayerBalance, router.Number(m.Steps)
	for _, v := range []*router.Number{
		&out.MaxOverMean, &out.Balancedness, &out.CV, &out.Gini, &out.Active, &out.Floor, &out.NullActive,
	} {
		*v /= n // 0/0 is NaN: undefined
	}
	out.Imbalance = out.MaxOverMean - 1
	null := chance.MeanOf(m.chance)
	out.NullMedian, out.NullP95 = null.Median(), null.P95()
	out.Flagged = router.Flagged(out.MaxOverMean, out.Floor, out.NullP95, threshold)
	for part, steps := range m.worst {
		if steps > out.WorstSteps {
			out.Worst, out.WorstSteps = router.Whole(part), steps
		}
	}
	return out
}
