package gain

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// ArmGain is one arm of a campaign with further ones, against the first.
type ArmGain struct {
	Name    Arm     `json:"name"`
	Gain    Gain    `json:"gain"` // over the first arm; undefined of that itself
	Verdict Verdict `json:"verdict,omitempty"`
	Share   *Share  `json:"share_of_ceiling,omitempty"`
}

// Share is how much of the gain of perfect routing an arm recovers,
//
//	ln(arm/normal) / ln(perfect/normal)
//
// 1 is all of it; below 0 the arm is slower than the normal one, above 1 faster than
// the perfect one. Low and High are Fieller's interval. All are undefined where the
// interval of the ceiling is not above zero.
type Share struct {
	Arm        Arm           `json:"arm"`
	Estimate   router.Number `json:"estimate"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence router.Number `json:"confidence"`
}

// fitted is the gain of an arm in a design of several.
type fitted struct {
	stats.BlockFit
	arm int
}

func (f fitted) effect(confidence float64) stats.TTest { return f.Effect(f.arm, confidence) }

// judgeArms judges the perfect arm as of two, and every further one beside it; all
// gains are those of one fit, which takes the positions out.
func (c Campaign) judgeArms(family int) Result {
	arms := append([]Arm{Normal, Perfect}, c.More...)
	var fit stats.BlockFit
	fitting := func(int) *fitted { return nil } // within a launch each arm has its own t
	if c.Design == LaunchPerArm {
		fit = stats.FitBlocks(c.blocks(arms))
		fitting = func(arm int) *fitted { return &fitted{fit, arm} }
	}
	c.fit = fitting(1)
	r := c.restrictTo(Normal, Perfect).judge(family)
	r.Arms = []ArmGain{{Name: Normal, Gain: logGains{}.gain(c.Confidence)}}
	labels, checks, launches := []string{string(Perfect)}, [][]Check{r.Checks}, []LaunchGain(nil)
	for i, arm := range c.More {
		side := c.restrictTo(Normal, arm)
		side.fit, side.Builds, side.Threshold, side.Checks = fitting(2+i), Builds{Normal, arm}, 0, nil
		judged := side.judge(family)
		row := ArmGain{Name: arm, Gain: judged.Gain, Verdict: judged.Verdict, Share: &Share{arm, router.Undefined(),
			router.Undefined(), router.Undefined(), router.Undefined()}}
		ratio := fit.Ratio(2+i, 1, simultaneous(c.Confidence, family))
		if c.Design == WithinLaunch {
			ratio = ratioOf(judged.Launches, r.Launches, simultaneous(c.Confidence, family))
		}
		if ratio.Defined() && r.Gain.Low > 0 &&
			row.Gain.Low.Defined() {
			*row.Share = Share{arm, router.Number(ratio.Estimate), router.Number(ratio.Low), router.Number(ratio.High),
				router.Number(ratio.Confidence)}
		}
		r.Arms = append(r.Arms, row)
		labels, checks = append(labels, string(arm)), append(checks, judged.Checks)
		for _, o := range judged.Outliers {
			same := func(other Outlier) bool { return other.Launch == o.Launch && other.Pair == o.Pair }
			if o.Arm != Normal && !(c.Design == WithinLaunch && slices.ContainsFunc(r.Outliers, same)) {
				r.Outliers = append(r.Outliers, o)
			}
		}
		for _, p := range judged.Pairs {
			p.Arm = arm
			r.Pairs = append(r.Pairs, p)
		}
		for _, l := range judged.Launches {
			l.Arm = arm
			launches = append(launches, l)
		}
	}
	r.Outliers, r.Launches = sortOutliers(r.Outliers), append(r.Launches, launches...)
	r.Arms = append(r.Arms, ArmGain{Name: Perfect, Gain: r.Gain, Verdict: r.Verdict})
	r.Share, r.Differences = r.Arms[1].Share, c.Differences
	r.Dose = c.dose(r.Launches, simultaneous(c.Confidence, family))
	r.Checks = mergeChecks(labels, checks)
	r.fails()
	return r
}

// ratioOf is the share of launches that hold both arms, and of no others.
func ratioOf(part, whole []LaunchGain, confidence float64) stats.Interval {
	var parts, wholes []float64
	for _, p := range part {
		for _, w := range whole {
			if w.Launch == p.Launch && p.Gain.Defined() && w.Gain.Defined() {
				parts, wholes = append(parts, math.Log1p(p.Gain.Float64())), append(wholes,
					math.Log1p(w.Gain.Float64()))
			}
		}
	}
	return stats.Ratio(parts, wholes, confidence)
}

// restrictTo is the campaign of two of its arms, the second in the place of the perfect one.
func (c Campaign) restrictTo(base, arm Arm) Campaign {
	all := c.Launches
	c.Launches, c.More = nil, nil
	for _, l := range all {
		switch l.Arm {
		case arm:
			l.Arm = Perfect
		case base:
		default:
			continue
		}
		c.Launches = append(c.Launches, l)
	}
	var differences []Difference
	for _, d := range c.Differences {
		if d.Arm == arm || d.Arm == "" && arm == Perfect {
			differences = append(differences, d)
		}
	}
	c.Differences = differences
	return c
}

// blocks are the complete pairs with a value of every arm, as logarithms of speed.
func (c Campaign) blocks(arms []Arm) (blocks []stats.Block) {
	byPair := map[int][]Launch{}
	var pairs []int
	for _, l := range c.Launches {
		if l.Status != StatusOK {
			continue
		}
		if byPair[l.Pair] == nil {
			pairs = append(pairs, l.Pair)
		}
		byPair[l.Pair] = append(byPair[l.Pair], l)
	}
	for _, pair := range pairs {
		b := stats.Block{Values: make([]float64, len(arms)), Positions: make([]int, len(arms))}
		whole := true
		for i, arm := range arms {
			at := slices.IndexFunc(byPair[pair], func(l Launch) bool { return l.Arm == arm })
			if whole = whole && at >= 0; !whole {
				break
			}
			b.Values[i] = logGain(1, byPair[pair][at].Value, c.Metric.HigherIsBetter)
			for _, other := range byPair[pair] {
				if other.Position < byPair[pair][at].Position {
					b.Positions[i]++
				}
			}
			whole = !math.IsNaN(b.Values[i])
		}
		if whole {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// mergeChecks puts the checks of several parts together: each name once, with its worst
// status and the parts of it by their labels.
func mergeChecks(labels []string, parts [][]Check) (merged []Check) {
	severity := []CheckStatus{Unknown, Pass, Warn, Fail}
	for i, checks := range parts {
		for _, c := range checks {
			at := slices.IndexFunc(merged, func(m Check) bool { return m.Name == c.Name })
			if at < 0 {
				at = len(merged)
				merged = append(merged, Check{Name: c.Name, Status: c.Status})
			}
			m := &merged[at]
			if slices.Index(severity, c.Status) > slices.Index(severity, m.Status) {
				m.Status = c.Status
			}
			c.Name = labels[i]
			m.Parts = append(m.Parts, c)
		}
	}
	return merged
}
