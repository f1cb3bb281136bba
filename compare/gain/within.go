package gain

import (
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"gonum.org/v1/gonum/stat"
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

// LaunchSD is the standard deviation, over launches, of the log gain that a launch of no
// noise would show, where only one launch was run: 0.55 points were measured with vLLM on
// H200s.
const LaunchSD = 0.006

// leastLaunches show how launches differ.
const leastLaunches = 2

// LaunchGain is the gain that a launch shows which holds all arms: the mean of the log
// ratios of its complete blocks, from six on their median.
type LaunchGain struct {
	Launch int           `json:"launch"`
	Point  router.Number `json:"point,omitempty"` // value of the point, in campaigns with points
	Arm    Arm           `json:"arm,omitempty"`   // the further arm whose value is Perfect
	Gain   router.Number `json:"gain"`            // fraction; undefined without a complete block
	Blocks []BlockGain   `json:"blocks"`
}

// BlockGain is a block of a launch. It is complete if it holds as many values of both arms,
// at least two.
type BlockGain struct {
	Block int    `json:"block"`
	Order string `json:"order"` // of its segments with a value: "ABBA", or "BAAB"
	// Normal and Perfect are the geometric means of its segments' values.
	Normal  router.Number `json:"normal"`
	Perfect router.Number `json:"perfect"`
	Gain    router.Number `json:"gain"`   // fraction
	Status  string        `json:"status"` // PairComplete or PairIncomplete
	Note    string        `json:"note"`
}

// least is how many pairs, or launches that hold all arms, make an interval.
func (c Campaign) least() int {
	if c.Design == WithinLaunch {
		return 1
	}
	return stats.MinPairs(c.Confidence)
}

// launches are the launches that hold all arms, each as one result of a pair, and the pairs of
// segments in their blocks: the n-th values of both arms.
func (c Campaign) launches() (units, halves []pairResult, gains []LaunchGain) {
	for launch := range chunks(c.Launches, func(l Launch) int { return l.Pair }) {
		unit := pairResult{pair: Pair{Pair: launch[0].Pair, Point: router.Number(c.point), Status: PairIncomplete,
			Normal: router.Undefined(), Perfect: router.Undefined(), Gain: router.Undefined()}}
		gained := LaunchGain{Launch: launch[0].Pair, Point: router.Number(c.point), Gain: router.Undefined()}
		var notes []string
		var sides [2][]float64
		for segments := range chunks(launch, func(l Launch) int { return l.Block }) {
			block, parts := c.block(segments)
			gained.Blocks, halves = append(gained.Blocks, block), append(halves, parts...)
			if block.Note != "" {
				notes = append(notes, block.Note)
			}
			if block.Status == PairComplete {
				unit.blocks = append(unit.blocks, parts)
				sides[0] = append(sides[0], math.Log(block.Normal.Float64()))
				sides[1] = append(sides[1], math.Log(block.Perfect.Float64()))
			}
		}
		unit.pair.Note = strings.Join(notes, "; ")
		if len(unit.blocks) > 0 {
			unit.pair.Status = PairComplete
			unit.pair.Normal, unit.pair.Perfect = geometric(sides[0]), geometric(sides[1])
			unit.log = stats.Center(unit.each(pairResult.logGain))
			unit.pair.Gain = fraction(unit.log)
			gained.Gain = unit.pair.Gain
		}
		units, gains = append(units, unit), append(gains, gained)
	}
	return units, halves, gains
}

// block is what the segments of a block, in the order run, say of the gain.
func (c Campaign) block(segments []Launch) (b BlockGain, halves []pairResult) {
	var notes []string
	var values [2][]*Launch
	for i := range segments {
		l := &segments[i]
		if note := l.said("segment"); note != "" {
			notes = append(notes, note)
		}
		if side := slices.Index(Arms[:], l.Arm); side >= 0 && l.Status == StatusOK {
			values[side] = append(values[side], l)
			b.Order += string("AB"[side])
		}
	}
	b = BlockGain{Block: segments[0].Block, Order: b.Order, Status: PairIncomplete, Note: strings.Join(notes, "; "),
		Normal: router.Undefined(), Perfect: router.Undefined(), Gain: router.Undefined()}
	var logs [3][]float64
	for i := range min(len(values[0]), len(values[1])) {
		s := pairResult{half: true, normal: values[0][i], perfect: values[1][i], pair: Pair{Pair: segments[0].Pair}}
		s.compare(c.Metric.HigherIsBetter)
		halves = append(halves, s)
		logs[0] = append(logs[0], math.Log(s.normal.Value))
		logs[1] = append(logs[1], math.Log(s.perfect.Value))
		logs[2] = append(logs[2], s.log)
	}
	if len(values[0]) != len(values[1]) || len(halves) < 2 || math.IsNaN(mean(logs[2])) {
		return b, halves
	}
	b.Status, b.Normal, b.Perfect, b.Gain = PairComplete, geometric(logs[0]), geometric(logs[1]),
		fraction(mean(logs[2]))
	return b, halves
}

// each is a log of the pair, or that of each of its blocks, the mean of its halves',
// where all have one.
func (s pairResult) each(log func(pairResult) float64) (logs []float64) {
	if s.blocks == nil {
		return []float64{log(s)}
	}
	for _, halves := range s.blocks {
		var of []float64
		for _, half := range halves {
			of = append(of, log(half))
		}
		if x := mean(of); !math.IsNaN(x) {
			logs = append(logs, x)
		}
	}
	return logs
}

// logsOf are the log gains of complete pairs by a log of each.
func logsOf(complete []pairResult, log func(pairResult) float64) (l logGains) {
	for _, s := range complete {
		logs := s.each(log)
		if x := stats.Center(logs); !math.IsNaN(x) {
			l.add(x, s.pair.Order)
			if s.blocks != nil {
				l.blocks = logs
			}
		}
	}
	return l
}

// blockShare is how much of the variance between launches that of their blocks explains, at
// most all of it. Undefined for one launch, and without a launch of several blocks.
func blockShare(complete []pairResult, sd float64) router.Number {
	variance, several := 0.0, 0 // of a launch's mean
	for _, s := range complete {
		if logs := s.each(pairResult.logGain); len(logs) > 1 {
			variance, several = variance+stat.Variance(logs, nil)/float64(len(logs)), several+1
		}
	}
	if several == 0 || !(sd > 0) || len(complete) < leastLaunches {
		return router.Undefined()
	}
	return min(1, router.Number(variance/float64(several)/(sd*sd)))
}

// geometric is the geometric mean of values by their logarithms.
func geometric(logs []float64) router.Number { return exp(mean(logs)) }

func mean(values []float64) float64 { return stat.Mean(values, nil) }
