package gain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/stats"
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

// Pair is what a comparison repeats, complete or not: a pair of launches, or a launch that holds all arms.
type Pair struct {
	Pair  int           `json:"pair"`
	Point router.Number `json:"point,omitempty"` // value of the point, in campaigns with points
	Arm   Arm           `json:"arm,omitempty"`   // the further arm whose value is Perfect
	// Order is "AB" when the normal launch (A) ran first, "BA" when the perfect
	// one did, empty when that is not known, and of a launch that holds all arms.
	Order string `json:"order"`
	// Normal and Perfect are the metric's values; of several blocks their geometric means.
	Normal  router.Number `json:"normal"`
	Perfect router.Number `json:"perfect"`
	Gain    router.Number `json:"gain"`   // fraction
	Status  string        `json:"status"` // PairComplete or PairIncomplete
	Note    string        `json:"note"`

	blocks []Block
	log    float64 // of the gain; NaN without a complete block
}

// The states of a pair, and of a block. Only complete ones enter the gain.
const (
	PairComplete   = "complete"
	PairIncomplete = "incomplete"
)

// Block holds the measurements of both arms that are compared, in the order run. It is complete with as
// many values of both arms: one of a pair, two at least in a launch that holds all arms.
type Block struct {
	Block int    `json:"block"`
	Order string `json:"order"` // of its segments with a value: "ABBA", or "AB" of a pair
	// Normal and Perfect are the geometric means of its segments' values.
	Normal  router.Number `json:"normal"`
	Perfect router.Number `json:"perfect"`
	Gain    router.Number `json:"gain"`   // fraction
	Status  string        `json:"status"` // PairComplete or PairIncomplete
	Note    string        `json:"note"`

	sides [2][]*Measurement // with a value: normal, and the other arm
}

// LaunchGain is the gain that a launch shows which holds all arms: the mean of the log
// ratios of its complete blocks, from six on their median.
type LaunchGain struct {
	Launch int           `json:"launch"`
	Point  router.Number `json:"point,omitempty"` // value of the point, in campaigns with points
	Arm    Arm           `json:"arm,omitempty"`   // the further arm whose value is Perfect
	Gain   router.Number `json:"gain"`            // fraction; undefined without a complete block
	Blocks []Block       `json:"blocks"`
}

// units are the pairs, or launches, of both arms among the sorted measurements.
//
//	two launches {Unit 0, normal, 100}, {Unit 0, perfect, 110} → one unit of gain ln 1.1
func (c *comparison) units() (units []Pair) {
	for i := range c.Measurements {
		m := &c.Measurements[i]
		if m.Point != c.point || m.Arm != Normal && m.Arm != c.arm {
			continue
		}
		if n := len(units); n == 0 || units[n-1].Pair != m.Unit {
			units = append(units, Pair{Pair: m.Unit, Point: router.Number(c.point)})
		}
		u := &units[len(units)-1]
		if n := len(u.blocks); n == 0 || u.blocks[n-1].Block != m.Block {
			u.blocks = append(u.blocks, Block{Block: m.Block})
		}
		b, side := &u.blocks[len(u.blocks)-1], 0
		if m.Arm != Normal {
			side = 1
		}
		if b.Note = noted(b.Note, m.said()); m.Status == StatusOK {
			b.sides[side], b.Order = append(b.sides[side], m), b.Order+string("AB"[side])
		}
	}
	for i := range units {
		if c.further {
			units[i].Arm = c.arm
		}
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

// settle computes a unit and its blocks from the measurements that do not fall out.
func (c *comparison) settle(u *Pair) {
	var sides [2][]float64
	u.Note, u.Status = "", PairIncomplete
	for i := range u.blocks {
		b := &u.blocks[i]
		c.settleBlock(b)
		if u.Note = noted(u.Note, b.Note); b.Status == PairComplete {
			for side := range sides {
				sides[side] = append(sides[side], mean(c.values(*b, side, primary)))
			}
		}
	}
	if u.log = stats.Center(c.logs(*u, primary)); !math.IsNaN(u.log) {
		u.Status = PairComplete
	}
	u.Gain, u.Normal, u.Perfect = fraction(u.log), exp(mean(sides[0])), exp(mean(sides[1]))
	if !c.within() {
		u.Order, u.Normal, u.Perfect = u.blocks[0].Order, u.blocks[0].Normal, u.blocks[0].Perfect
	}
}

func (c *comparison) settleBlock(b *Block) {
	least, n, other := 1, len(b.sides[0]), len(b.sides[1])
	unplaced := func(m *Measurement) bool { return m.Position == UnknownPosition }
	if c.within() {
		least = 2
	} else if n*other == 0 || slices.ContainsFunc(slices.Concat(b.sides[0], b.sides[1]), unplaced) {
		b.Order = ""
	}
	for side, value := range []*router.Number{&b.Normal, &b.Perfect} {
		if *value = exp(mean(c.values(*b, side, primary))); len(b.sides[side]) == 1 {
			*value = router.Number(b.sides[side][0].Value)
		}
	}
	gained := c.blockLog(*b, primary)
	b.Status, b.Gain = PairIncomplete, router.Undefined()
	if n == other && n >= least && !math.IsNaN(gained) {
		b.Status, b.Gain = PairComplete, fraction(gained)
	}
}

// A reading is a metric of a measurement as the logarithm of its speed, NaN where it has none.
type reading func(*Measurement) float64

func primary(m *Measurement) float64 { return logOf(m.Value) }

// logOf is NaN unless the value is positive and finite.
func logOf(value float64) float64 {
	if !(value > 0) || math.IsInf(value, 0) {
		return math.NaN()
	}
	return math.Log(value)
}

// values are a side of a block in a metric, without what falls out.
func (c *comparison) values(b Block, side int, read reading) (logs []float64) {
	for _, m := range b.sides[side] {
		if !c.out[m] {
			logs = append(logs, read(m))
		}
	}
	return logs
}

// blockLog is the log gain of a block in a metric: the difference of the arms' means, NaN where an arm has none.
// Its sign is set by the metric's direction.
func (c *comparison) blockLog(b Block, read reading) float64 {
	gained := mean(c.values(b, 1, read)) - mean(c.values(b, 0, read))
	if c.Metric.HigherIsBetter {
		return gained
	}
	return -gained
}

// logs are the log gains of a unit's complete blocks in a metric, without what is NaN.
func (c *comparison) logs(u Pair, read reading) (logs []float64) {
	for _, b := range u.blocks {
		if log := c.blockLog(b, read); b.Status == PairComplete && !math.IsNaN(log) {
			logs = append(logs, log)
		}
	}
	return logs
}

// complete are the units with a gain.
func complete(units []Pair) []Pair {
	return slices.DeleteFunc(slices.Clone(units), func(u Pair) bool { return u.Status != PairComplete })
}

func mean(values []float64) float64 { return stat.Mean(values, nil) }
