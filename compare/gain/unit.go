package gain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router"
)

// Design is how the arms of a campaign share its launches.
type Design string

// The designs.
const (
	LaunchPerArm Design = "launch_per_arm" // every launch is of one arm
	// WithinLaunch: every launch holds all arms, in blocks of segments: an order of the
	// arms and its reverse, ABBA or BAAB.
	WithinLaunch Design = "within_launch"
)

// needs are what a design needs of its units.
type needs struct {
	units  int // for a verdict
	lost   int // degrees of freedom that their interval loses
	values int // of each arm, at least, for a complete block
}

// needs differ by design: a launch holds all arms, and the two orders of pairs have a mean each.
func (r *Recorded) needs() needs {
	if r.within() {
		return needs{units: MinLaunches, lost: 1, values: 2}
	}
	return needs{units: MinPairs, lost: 2, values: 1}
}

// Unit is what a comparison repeats, complete or not: a pair of launches, or a launch that holds all arms. Its
// values are the block's; of several blocks the geometric means, and the gain is the mean of the log ratios.
type Unit struct {
	Pair  int           `json:"pair"`            // number of the pair, or of the launch
	Point router.Number `json:"point,omitempty"` // value of the point, in campaigns with points
	Arm   Arm           `json:"arm,omitempty"`   // the further arm whose value is Perfect
	Values
	Blocks []Block `json:"blocks,omitempty"` // of a launch that holds all arms

	blocks []Block
	logs   []float64 // of the gains of complete blocks
	log    float64   // of the gain; NaN without a complete block
}

// Block holds the measurements of both arms that are compared, in the order run. It is complete with as
// many values of both arms: one of a pair, two at least in a launch that holds all arms.
type Block struct {
	Block int `json:"block"`
	Values

	sides [2][]*Measurement // with a value: normal, and the other arm
}

// Values are what a unit or a block shows. Normal and Perfect are geometric means of the metric.
type Values struct {
	// Order is of the measurements with a value: "ABBA", or "AB" of a pair whose normal launch (A) ran first; empty
	// where that is not known, and of a launch that holds all arms.
	Order   string        `json:"order"`
	Normal  router.Number `json:"normal"`
	Perfect router.Number `json:"perfect"`
	Gain    router.Number `json:"gain"`   // fraction
	Status  string        `json:"status"` // PairComplete or PairIncomplete
	Note    string        `json:"note"`
}

// The states of a unit, and of a block. Only complete ones enter the gain.
const (
	PairComplete   = "complete"
	PairIncomplete = "incomplete"
)

// measuredUnits are the pairs, or launches, of both arms among the sorted measurements.
//
//	two launches {Unit 0, normal, 100}, {Unit 0, perfect, 110} → one unit of gain ln 1.1
func (c *comparison) measuredUnits() (units []Unit) {
	for i := range c.Measurements {
		m := &c.Measurements[i]
		if m.Point != c.Value || m.Arm != Normal && m.Arm != c.arm {
			continue
		}
		if n := len(units); n == 0 || units[n-1].Pair != m.Unit {
			u := Unit{Pair: m.Unit, Point: router.Number(c.Value)}
			if c.further() {
				u.Arm = c.arm
			}
			units = append(units, u)
		}
		u := &units[len(units)-1]
		if n := len(u.blocks); n == 0 || u.blocks[n-1].Block != m.Block {
			u.blocks = append(u.blocks, Block{Block: m.Block})
		}
		b, side := &u.blocks[len(u.blocks)-1], 0
		if m.Arm != Normal {
			side = 1
		}
		if b.Note = noted(b.Note, m.said()); m.Status != StatusOK {
			continue
		}
		if b.sides[side] = append(b.sides[side], m); m.Position != UnknownPosition {
			b.Order += string("AB"[side])
		}
	}
	for i := range units {
		c.settle(&units[i])
	}
	return units
}

// noted is a note with one more.
func noted(note, more string) string { return strings.Trim(note+"; "+more, "; ") }

// said is what a block is noted with for a measurement: "normal timed out: after 600 s".
func (m *Measurement) said() string {
	if m.Status == StatusOK {
		return m.Note
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", m.Arm, m.Status, m.Note), ": ")
}

// settle computes a unit and its blocks from the measurements that do not fall out. The sign of a gain is set by the
// metric's direction.
func (c *comparison) settle(u *Unit) {
	note, sides := "", [2][]float64{}
	u.logs = nil
	for i := range u.blocks {
		b := &u.blocks[i]
		n, other := len(b.sides[0]), len(b.sides[1])
		if !c.within() && len(b.Order) < max(2, n+other) {
			b.Order = "" // it is not known
		}
		var means [2]float64
		for side, value := range []*router.Number{&b.Normal, &b.Perfect} {
			in := slices.DeleteFunc(slices.Clone(b.sides[side]), func(m *Measurement) bool { return c.out[m] })
			means[side] = mean(mapped(in, (*Measurement).log))
			if *value = exp(means[side]); len(in) == 1 {
				*value = router.Number(in[0].Value)
			}
		}
		gained := means[1] - means[0]
		if !c.Metric.HigherIsBetter {
			gained = -gained
		}
		b.Status, b.Gain, note = PairIncomplete, router.Undefined(), noted(note, b.Note)
		if n == other && n >= c.needs().values && !math.IsNaN(gained) {
			b.Status, b.Gain = PairComplete, fraction(gained)
			u.logs, sides[0], sides[1] = append(u.logs, gained), append(sides[0], means[0]), append(sides[1], means[1])
		}
	}
	u.log = mean(u.logs)
	if u.Values = u.blocks[0].Values; c.within() {
		u.Values = Values{Normal: exp(mean(sides[0])), Perfect: exp(mean(sides[1])), Status: PairIncomplete, Note: note}
		u.Blocks = u.blocks
	}
	if u.Gain = fraction(u.log); u.Gain.Defined() {
		u.Status = PairComplete
	}
}

// log is the logarithm of a measurement's value, NaN unless that is positive and finite.
func (m *Measurement) log() float64 {
	log := math.Log(m.Value)
	return log + 0*log // 0 times an infinite one is NaN
}

func (v Values) complete() bool { return v.Status == PairComplete }

func mean(values []float64) float64 { return stat.Mean(values, nil) }
