package gain

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"gonum.org/v1/gonum/stat"
)

// Load is how uneven the ranks' loads were under an arm: max/mean, a mean over layers.
type Load struct {
	MaxOverMean router.Number
	Measured    bool // recorded; else as the arm's router was told
}

// Dose is the line of time over load imbalance through the arms whose imbalance a router was told to
// make, and the balanced one. The learned router stands beside it: what it does in a single step, a
// load summed over steps does not show.
//
// The unit is the launch: its slope is that of least squares through the times of its arms, each over
// that of the balanced arm, and the interval is Student's t over launches. Of one launch it is that of
// its blocks, widened by the slope's error where every arm has the one that LaunchSD is of two.
type Dose struct {
	// Slope is by how much of the time under balanced routing one unit of max/mean makes a step
	// longer: at 0.13, each 10 % of imbalance costs 1.3 %.
	Slope      router.Number `json:"slope"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence float64       `json:"confidence"`
	N          int           `json:"n"` // launches
	Method     string        `json:"method"`
	Arms       []DoseArm     `json:"arms"` // by load
	// Bent says that the time of some fitted arm is off the line between its neighbors, by more than
	// chance (t over launches, Bonferroni over arms) and by leastBend or more: no slope holds for all loads.
	// One launch, or one arm beside the balanced one, does not show it.
	Bent bool `json:"bent"`
}

// DoseArm is a point of the curve.
type DoseArm struct {
	Arm         Arm           `json:"arm"`
	MaxOverMean router.Number `json:"rank_max_over_mean"`
	Measured    bool          `json:"measured"`
	Time        router.Number `json:"time"` // over that of the balanced arm, with its interval
	Low         router.Number `json:"low"`
	High        router.Number `json:"high"`
	Fitted      bool          `json:"fitted"` // the line goes through it
}

// dose is the curve of a campaign whose launches hold arms of known loads: those of launches are the
// gains of the perfect arm and, by their names, of further ones. Nil where two loads are not apart.
func (c *Campaign) dose(launches []LaunchGain, confidence float64) *Dose {
	if c.Design != WithinLaunch || len(c.Loads) == 0 {
		return nil
	}
	fitted := slices.DeleteFunc(append([]Arm{Perfect}, c.More...), func(a Arm) bool {
		return !(c.Loads[a].MaxOverMean > 0)
	})
	var loads []float64
	for _, a := range fitted {
		loads = append(loads, c.Loads[a].MaxOverMean.Float64())
	}
	_, sd := stat.PopMeanStdDev(loads, nil)
	if len(fitted) < 2 || sd < leastSpread || fitted[0] != Perfect {
		return nil
	}
	d := &Dose{Confidence: confidence}
	slope := func(times []float64) float64 {
		_, beta := stat.LinearRegression(loads, times, nil, false)
		return beta
	}
	lines := overLaunches(launches, len(c.More)+2, func(gained map[Arm]float64) float64 {
		var times []float64
		for _, a := range fitted {
			times = append(times, timeOver(gained, a))
		}
		return slope(times)
	}, LaunchSD/math.Sqrt2/(sd*math.Sqrt(float64(len(loads)))), confidence)
	d.Slope, d.Low, d.High, d.N = router.Number(lines.Estimate), router.Number(lines.Low), router.Number(lines.High),
		lines.N
	d.Method = map[bool]string{true: OneLaunch, false: LaunchT}[lines.N == 1]
	for _, a := range slices.Collect(maps.Keys(c.Loads)) {
		t := overLaunches(launches, len(c.More)+2, func(gained map[Arm]float64) float64 {
			return math.Log(timeOver(gained,
				a))
		},
			LaunchSD, confidence)
		d.Arms = append(d.Arms, DoseArm{Arm: a, MaxOverMean: c.Loads[a].MaxOverMean, Measured: c.Loads[a].Measured,
			Time: exp(t.Estimate), Low: exp(t.Low), High: exp(t.High), Fitted: slices.Contains(fitted, a)})
	}
	slices.SortFunc(d.Arms, func(a, b DoseArm) int {
		return cmp.Or(cmp.Compare(a.MaxOverMean, b.MaxOverMean), cmp.Compare(a.Arm, b.Arm))
	})
	d.Bent = d.N > 1 && d.bent(launches, len(c.More)+2)
	return d
}

// leastBend is the part of a step's time from which a curve is called bent.
const leastBend = 0.005

// bent tests each arm between the ends, in launches that hold so many arms.
func (d *Dose) bent(launches []LaunchGain, arms int) bool {
	curve := d.fitted()
	for i := 1; i < len(curve)-1; i++ {
		rest := slices.Delete(slices.Clone(curve), i, i+1)
		off := overLaunches(launches, arms, func(gained map[Arm]float64) float64 {
			return timeOver(gained, curve[i].Arm) - timeAt(rest, gained, curve[i].MaxOverMean.Float64())
		}, LaunchSD, simultaneous(d.Confidence, len(curve)-2))
		if math.Abs(off.Estimate) >= leastBend && (off.Low > 0 || off.High < 0) {
			return true
		}
	}
	return false
}

// leastSpread is the least standard deviation of loads through which a line is drawn.
const leastSpread = 0.01

// timeOver is the time under an arm over that under the balanced one, by the log gains over the normal
// arm.
func timeOver(gained map[Arm]float64, a Arm) float64 { return math.Exp(gained[Perfect] - gained[a]) }

// overLaunches is the t over launches of what the log gains of its arms say, NaN of those that lack one;
// of one launch that of its blocks, widened by sd.
func overLaunches(launches []LaunchGain, arms int, of func(map[Arm]float64) float64, sd,
	confidence float64) stats.TTest {
	byLaunch := map[int]map[int]map[Arm]float64{} // blocks
	for _, l := range launches {
		for _, b := range l.Blocks {
			if b.Status != PairComplete {
				continue
			}
			if byLaunch[l.Launch] == nil {
				byLaunch[l.Launch] = map[int]map[Arm]float64{}
			}
			if byLaunch[l.Launch][b.Block] == nil {
				byLaunch[l.Launch][b.Block] = map[Arm]float64{Normal: 0}
			}
			byLaunch[l.Launch][b.Block][cmp.Or(l.Arm, Perfect)] = math.Log1p(b.Gain.Float64())
		}
	}
	var units, blocks []float64
	for _, launch := range slices.Sorted(maps.Keys(byLaunch)) {
		blocks = nil
		for _, block := range slices.Sorted(maps.Keys(byLaunch[launch])) {
			if gained := byLaunch[launch][block]; len(gained) == arms {
				blocks = append(blocks, of(gained))
			}
		}
		if len(blocks) > 0 {
			units = append(units, stats.Center(blocks))
		}
	}
	if len(units) == 1 {
		t := stats.Widened(blocks, sd, confidence)
		t.N = 1
		return t
	}
	return stats.PairedT(units, confidence)
}
