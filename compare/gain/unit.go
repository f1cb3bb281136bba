package gain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/stats"
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

// unit is what a comparison repeats: a pair of launches, which is one block, or a launch that holds
// all arms in several.
type unit struct {
	number int
	blocks []block
	log    float64 // of its gain; NaN without a complete block
}

// block holds the measurements of both arms that are compared, in the order run. It is complete with as
// many values of both arms: one of a pair, two at least in a launch that holds all arms.
type block struct {
	number   int
	sides    [2][]*Measurement // with a value: normal, and the other arm
	order    string            // "AB" where normal ran first, "ABBA"; empty where a position is not known
	note     string
	complete bool
}

// units are the units of both arms among the sorted measurements.
//
//	two launches {Unit 0, normal, 100}, {Unit 0, perfect, 110} → one unit of gain ln 1.1
func (c *comparison) units() (units []unit) {
	for i := range c.Measurements {
		m := &c.Measurements[i]
		if m.Point != c.point || m.Arm != Normal && m.Arm != c.arm {
			continue
		}
		if n := len(units); n == 0 || units[n-1].number != m.Unit {
			units = append(units, unit{number: m.Unit})
		}
		u := &units[len(units)-1]
		if n := len(u.blocks); n == 0 || u.blocks[n-1].number != m.Block {
			u.blocks = append(u.blocks, block{number: m.Block})
		}
		c.add(&u.blocks[len(u.blocks)-1], m)
	}
	for i := range units {
		for j := range units[i].blocks {
			c.complete(&units[i].blocks[j])
		}
		units[i].log = c.logOf(units[i], primary)
	}
	return units
}

// add puts a measurement into its block. Of several launches of one arm in a pair the first counts.
func (c *comparison) add(b *block, m *Measurement) {
	if note := m.said(c.within()); note != "" {
		b.note = strings.TrimPrefix(b.note+"; "+note, "; ")
	}
	side := 0
	if m.Arm != Normal {
		side = 1
	}
	if m.Status == StatusOK && (c.within() || len(b.sides[side]) == 0) {
		b.sides[side] = append(b.sides[side], m)
		b.order += string("AB"[side])
	}
}

func (c *comparison) complete(b *block) {
	least := 1
	if c.within() {
		least = 2
	} else if slices.ContainsFunc(b.all(), func(m *Measurement) bool { return m.Position == UnknownPosition }) ||
		len(b.order) < 2 {
		b.order = ""
	}
	a, other := len(b.sides[0]), len(b.sides[1])
	b.complete = a == other && a >= least && !math.IsNaN(c.blockLog(*b, primary))
	if !c.within() && a*other > 0 && !b.complete {
		b.note = strings.TrimPrefix(b.note+"; no gain: want two positive values", "; ")
	}
}

func (b block) all() []*Measurement { return slices.Concat(b.sides[0], b.sides[1]) }

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

// blockLog is the log gain of a block in a metric: the difference of the arms' means over the segments
// that do not fall out, NaN where an arm has none. Its sign is set by the metric's direction.
func (c *comparison) blockLog(b block, read reading) float64 {
	var logs [2][]float64
	for side := range b.sides {
		for _, m := range b.sides[side] {
			if !c.out[m] {
				logs[side] = append(logs[side], read(m))
			}
		}
	}
	if c.Metric.HigherIsBetter {
		return mean(logs[1]) - mean(logs[0])
	}
	return mean(logs[0]) - mean(logs[1])
}

// logs are the log gains of a unit's complete blocks in a metric, without what is NaN.
func (c *comparison) logs(u unit, read reading) (logs []float64) {
	for _, b := range u.blocks {
		if log := c.blockLog(b, read); b.complete && !math.IsNaN(log) {
			logs = append(logs, log)
		}
	}
	return logs
}

func (c *comparison) logOf(u unit, read reading) float64 { return stats.Center(c.logs(u, read)) }

// order is a pair's: "AB", "BA", or empty where it is not known, and of a launch that holds all arms.
func (c *comparison) order(u unit) string {
	if c.within() {
		return ""
	}
	return u.blocks[0].order
}

// name is how a sentence calls a block.
func (c *comparison) name(u unit, b block) string {
	if c.within() {
		return fmt.Sprintf("launch %d, block %d", u.number, b.number+1)
	}
	return fmt.Sprintf("pair %d", u.number)
}

// said is what a block is noted with for a measurement.
func (m *Measurement) said(segment bool) string {
	if m.Status == StatusOK {
		return m.Note
	}
	what := map[bool]string{true: "segment", false: "launch"}[segment]
	return strings.TrimSuffix(fmt.Sprintf("%s %s %s: %s", m.Arm, what, m.Status, m.Note), ": ")
}

// sorted is the campaign with copies of its lists in the order of results.
func (c Campaign) sorted() Campaign {
	c.Measurements = append([]Measurement{}, c.Measurements...)
	slices.SortStableFunc(c.Measurements, func(a, b Measurement) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Position, b.Position),
			cmp.Compare(a.Arm, b.Arm))
	})
	c.Proof = append([]Proof{}, c.Proof...)
	slices.SortStableFunc(c.Proof, func(a, b Proof) int {
		return cmp.Or(cmp.Compare(a.Arm, b.Arm), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Evidence, b.Evidence))
	})
	c.Differences = append([]Difference{}, c.Differences...)
	slices.SortStableFunc(c.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return c
}

func mean(values []float64) float64 { return stat.Mean(values, nil) }
