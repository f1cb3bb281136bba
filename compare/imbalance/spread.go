package imbalance

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Spread is a time per step over the steps that count, in nanoseconds. Percentiles are
// nearest ranks (stats.Percentile): P99NS of fewer than 100 steps is the largest. All are
// undefined without a step, and where a step has no such time.
type Spread struct {
	Steps  int           `json:"steps"` // that have the time
	MeanNS router.Number `json:"mean_ns"`
	P50NS  router.Number `json:"p50_ns"`
	P99NS  router.Number `json:"p99_ns"`
}

// SpreadOf takes the values step by step.
func SpreadOf(steps []float64) Spread {
	return Spread{len(steps), router.Number(stat.Mean(steps, nil)), router.Number(stats.Percentile(steps, 50)),
		router.Number(stats.Percentile(steps, 99))}
}

// OverSteps is how the steps that count differ: users of decoding feel the worst one.
type OverSteps struct {
	// Step is the wall time of a step, from its first kernel to that of the next step,
	// mean over ranks. The last step has none, unless it is the only one: then it ends
	// with its last kernel.
	Step Spread `json:"step"`
	// Experts is the expert time (see Times.Of) of the slowest rank of each layer,
	// added over layers; Loss is the straggler loss of expert time, likewise: its mean is
	// that of Bound. Undefined for one rank.
	Experts Spread `json:"experts"`
	Loss    Spread `json:"loss"`
}

// OverSteps takes the wall time of each step that has one.
func (t *Times) OverSteps(wall map[router.OptInt]float64) OverSteps {
	var walls, experts []float64
	for _, s := range t.Steps {
		if s.Excluded != Counts {
			continue
		}
		experts = append(experts, s.SlowestExpertsNS.Float64())
		if ns, ok := wall[s.Number]; ok {
			walls = append(walls, ns)
		}
	}
	return OverSteps{SpreadOf(walls), SpreadOf(experts), SpreadOf(t.expertLoss())}
}

// expertLoss is, step by step, the straggler loss of expert time over all judged layers; nil
// where no layer has expert time on several ranks.
func (t *Times) expertLoss() (loss []float64) {
	for _, l := range t.Judged() {
		if _, mean := lossAndMean(l.Experts); mean.Defined() && len(l.Ranks) > 1 {
			if loss == nil {
				loss = make([]float64, len(l.Experts))
			}
			floats.Add(loss, lossOf(l.Experts))
		}
	}
	return loss
}

// Bound is what even expert time over ranks gains by itself, from one arm alone: the
// straggler loss of expert time, if every rank of a layer took the mean. It is inferred:
// no step with balanced routing was measured, and experts of equal size may also run
// faster, which it does not hold.
type Bound struct {
	// Gain is loss/(step − loss), the throughput that a step without the loss would gain, a
	// fraction: router.GainBound with f = slowest/step and b = mean/slowest expert time.
	Gain router.Number `json:"gain"`
	// Low and High bound Gain by Student's t interval of the loss over steps, at 95 %;
	// undefined for fewer than 2 steps. Steps of one launch are not independent launches.
	Low    router.Number `json:"gain_low"`
	High   router.Number `json:"gain_high"`
	LossNS router.Number `json:"loss_ns"` // Σ over layers of max − mean over ranks, mean over steps
	StepNS router.Number `json:"step_ns"` // wall time of a step under the profiler, mean over steps
	Of     Of            `json:"of"`
}

// Bound is undefined for one rank, and where no layer is named: busy ranks of different
// layers cancel.
func (t *Times) Bound(over OverSteps) Bound {
	none := router.Undefined()
	b := Bound{Gain: none, Low: none, High: none, LossNS: none, StepNS: over.Step.MeanNS, Of: t.Of}
	if len(t.Ranks) < 2 || t.Unmarked || len(t.Layers) == 0 || !t.Layers[len(t.Layers)-1].Number.Defined() {
		return b
	}
	loss := t.expertLoss()
	if loss == nil {
		return b
	}
	gain := func(ns float64) router.Number { return router.Number(ns) / (b.StepNS - router.Number(ns)) }
	over95 := stats.PairedT(loss, 0.95)
	b.LossNS = router.Number(over95.Estimate)
	b.Gain, b.Low, b.High = gain(over95.Estimate), gain(over95.Low), gain(over95.High)
	return b
}

// The spread of a share is told from pairs of steps at most pairDistance apart, of three
// steps at least.
const (
	pairDistance = 8
	leastSteps   = 3
)

// noiseFloor is the max/mean that n equal ranks would show whose times vary from step to
// step as these do, by step and then by rank:
//
//	1 + σ·E[the largest of n standard normals]
//
// σ is the spread of a rank's share of its step, from the differences of the share between
// near steps. Their lower quartile decides: a rank that is hot in some steps and a load
// that drifts leave it, so that only what varies in all steps is noise. Undefined for fewer
// than three steps with time or two ranks.
func noiseFloor(steps [][]float64) router.Number {
	var shares [][]float64
	for _, step := range steps {
		if mean := stat.Mean(step, nil); mean > 0 && len(step) > 1 {
			share := slices.Clone(step)
			for i := range share {
				share[i] /= mean
			}
			shares = append(shares, share)
		}
	}
	if len(shares) < leastSteps {
		return router.Undefined()
	}
	var apart []float64
	for i, share := range shares {
		for _, later := range shares[i+1 : min(len(shares), i+1+pairDistance)] {
			for r := range share {
				apart = append(apart, math.Abs(later[r]-share[r]))
			}
		}
	}
	slices.Sort(apart)
	// a difference of two shares of n has the variance 2·σ²·(1 − 1/n)
	n := float64(len(shares[0]))
	quartile := distuv.UnitNormal.Quantile(0.625) // of |x|
	sigma := apart[len(apart)/4] / quartile / math.Sqrt(2*(1-1/n))
	return router.Number(1 + sigma*largestNormal(n))
}

// largestNormal is the expected largest of n standard normals.
func largestNormal(n float64) float64 {
	density := func(x float64) float64 {
		return x * n * math.Pow(distuv.UnitNormal.CDF(x), n-1) * distuv.UnitNormal.Prob(x)
	}
	const end, points = 9, 200
	return quad.Fixed(density, -end, end, points, nil, 0)
}
