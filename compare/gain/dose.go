package gain

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Dose is the line of time over load imbalance through the arms whose imbalance a router was told to
// make, and the balanced one. The learned router stands beside it: what it does in a single step, a
// load summed over steps does not show.
//
// The unit is the launch: least squares through the times of its arms, each over the balanced arm's time,
// give its slope, and Student's t over launches gives the interval. The interval of a single launch is over its
// blocks, widened by the error that LaunchSD in every arm gives the slope.
type Dose struct {
	// Slope is by how much of the time under balanced routing one unit of max/mean makes a step
	// longer: at 0.13, each 10 % of imbalance costs 1.3 %.
	Slope      router.Number `json:"slope"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence float64       `json:"confidence"`
	N          int           `json:"n"`    // launches
	Arms       []DoseArm     `json:"arms"` // by load
	// Bent says that the time of some fitted arm is off the line between its neighbors, beyond
	// their intervals and by leastBend or more: no slope holds for all loads.
	// One launch, or one arm beside the balanced one, does not show it.
	Bent bool `json:"bent"`
}

// DoseArm is a point of the curve.
type DoseArm struct {
	Arm Arm `json:"arm"`
	Load
	Time   router.Number `json:"time"` // over the balanced arm's, with its interval
	Low    router.Number `json:"low"`
	High   router.Number `json:"high"`
	Fitted bool          `json:"fitted"` // the line goes through it
}

// leastSpread is the least standard deviation of loads through which a line is drawn.
const leastSpread = 0.01

// dose is the curve at a point of a campaign whose launches hold arms of known loads, by the units of all arms.
// Nil where no two loads are apart.
func (r *Recorded) dose(point float64, units []Unit) *Dose {
	loads := r.loads(point)
	d := &Dose{Confidence: r.simultaneous(1)}
	all := gainsOf(units, point, append([]Arm{Perfect}, r.More...))
	for a, load := range loads {
		t := all.test(func(gained armLogs) float64 { return gained[Perfect] - gained[a] }, LaunchSD, d.Confidence)
		d.Arms = append(d.Arms, DoseArm{a, load, exp(t.Estimate), exp(t.Low), exp(t.High), a != Normal})
	}
	slices.SortFunc(d.Arms, func(a, b DoseArm) int {
		return cmp.Or(cmp.Compare(a.MaxOverMean, b.MaxOverMean), cmp.Compare(a.Arm, b.Arm))
	})
	fitted := mapped(d.Line(), func(a DoseArm) float64 { return a.MaxOverMean.Float64() })
	spread := stat.PopStdDev(fitted, nil)
	if !(spread >= leastSpread) || loads[Perfect].MaxOverMean == 0 {
		return nil
	}
	line := all.test(func(gained armLogs) float64 {
		times := mapped(d.Line(), gained.time)
		_, slope := stat.LinearRegression(fitted, times, nil, false)
		return slope
	}, LaunchSD/math.Sqrt2/spread/math.Sqrt(float64(len(fitted))), d.Confidence)
	d.Slope, d.Low, d.High, d.N = router.Number(line.Estimate), router.Number(line.Low), router.Number(line.High), line.N
	d.Bent = d.N > 1 && slices.ContainsFunc(d.Line(), d.off)
	return d
}

// loads are how uneven the arms were at a point: the means of the measured loads, else as their routers were told.
func (r *Recorded) loads(point float64) map[Arm]Load {
	all, n := map[Arm]Load{}, map[Arm]router.Number{} // measured
	for _, m := range r.Measurements {
		switch so, now := all[m.Arm], m.Load; {
		case m.Point != point || !(now.MaxOverMean > 0) || so.Measured && !now.Measured:
		case now.Measured:
			n[m.Arm]++
			all[m.Arm] = Load{so.MaxOverMean + (now.MaxOverMean-so.MaxOverMean)/n[m.Arm], true}
		default:
			all[m.Arm] = now
		}
	}
	return all
}

// Line are the arms that the curve goes through, by load.
func (d *Dose) Line() []DoseArm { return only(d.Arms, func(a DoseArm) bool { return a.Fitted }) }

// leastBend is the part of a step's time from which a curve is called bent.
const leastBend = 0.005

// off reports an arm between the ends of the curve whose time is off the line between its neighbors, by leastBend or
// more and whatever their intervals hold.
func (d *Dose) off(a DoseArm) bool {
	line := without(d.Line(), a.Arm)
	if n := len(line); n < 2 || a.MaxOverMean <= line[0].MaxOverMean || a.MaxOverMean >= line[n-1].MaxOverMean {
		return false
	}
	time := func(a DoseArm) float64 { return a.Time.Float64() }
	low := func(a DoseArm) float64 { return a.Low.Float64() }
	high := func(a DoseArm) float64 { return a.High.Float64() }
	on := func(bound func(DoseArm) float64) float64 { return timeAt(line, a.MaxOverMean, bound) }
	return math.Abs(time(a)-on(time)) >= leastBend && (low(a) > on(high) || high(a) < on(low))
}

// Learned is by how much of the time one unit of max/mean makes a step longer under the learned router, where that is
// off the line: it may load a few experts more than routers that make an imbalance do. Undefined elsewhere.
func (d *Dose) Learned() router.Number {
	for _, a := range only(d.Arms, func(a DoseArm) bool { return !a.Fitted && d.off(a) }) {
		return (a.Time - 1) / (a.MaxOverMean - 1)
	}
	return router.Undefined()
}

// without is a curve without one of its arms.
func without(curve []DoseArm, arm Arm) []DoseArm {
	return only(curve, func(a DoseArm) bool { return a.Arm != arm })
}

// armLogs are the log gains over the normal arm in a block, by arm.
type armLogs map[Arm]float64

// time is the time under an arm over the time under the balanced one.
func (g armLogs) time(a DoseArm) float64 { return math.Exp(g[Perfect] - g[a.Arm]) }

// timeAt is the time at a load on straight lines between the times of arms.
func timeAt(curve []DoseArm, load router.Number, time func(DoseArm) float64) float64 {
	i := sort.Search(len(curve), func(i int) bool { return curve[i].MaxOverMean >= load })
	if i == 0 {
		return time(curve[0])
	}
	a, b := curve[i-1], curve[i]
	share := ((load - a.MaxOverMean) / (b.MaxOverMean - a.MaxOverMean)).Float64()
	return (1-share)*time(a) + share*time(b)
}

// launchLogs are the blocks of launches that hold every arm.
type launchLogs [][]armLogs

// gainsOf are the blocks of launches at a point that are complete in all of these arms, in order.
func gainsOf(units []Unit, point float64, arms []Arm) launchLogs {
	by := map[[2]int]armLogs{} // by launch and block
	for _, u := range only(units, func(u Unit) bool { return u.Point == router.Number(point) }) {
		for _, b := range only(u.Blocks, Block.complete) {
			at := [2]int{u.Pair, b.Block}
			if by[at] == nil {
				by[at] = armLogs{Normal: 0}
			}
			by[at][cmp.Or(u.Arm, Perfect)] = math.Log1p(b.Gain.Float64())
		}
	}
	launches := map[int][]armLogs{}
	for _, at := range slices.SortedFunc(maps.Keys(by), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		if !slices.ContainsFunc(arms, func(a Arm) bool { _, has := by[at][a]; return !has }) {
			launches[at[0]] = append(launches[at[0]], by[at])
		}
	}
	return mapped(slices.Sorted(maps.Keys(launches)), func(launch int) []armLogs { return launches[launch] })
}

// test computes a number from the log gains of each block, over launches.
func (l launchLogs) test(of func(armLogs) float64, sd, confidence float64) stats.Interval {
	return overLaunches(mapped(l, func(launch []armLogs) []float64 { return mapped(launch, of) }), sd, confidence)
}
