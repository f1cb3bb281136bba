package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// campaign is a result with how its campaign stands.
type campaign struct {
	gain.Result
	run gain.Run
}

// unit is what is repeated.
func (c *campaign) unit() string {
	if c.Design == gain.WithinLaunch {
		return "launch"
	}
	return "pair"
}

// oneServer measures both arms in each launch, which launches do not disturb.
const oneServer = "moebalance bench --treatment hook --server SERVER --ready URL --client CLIENT"

// again is the command that runs a campaign of its kind anew, with so many pairs or launches.
func (c *campaign) again(n float64) string {
	flag, t := "--pairs", c.run.Treatment
	if c.Design == gain.WithinLaunch {
		flag, t = "--launches", "hook"
	}
	command := fmt.Sprintf("moebalance bench %s %.0f ", flag, n)
	switch {
	case len(c.Arms) == 2:
		command += fmt.Sprintf("--arms %s,%s ", c.Arms[0].Name, c.Arms[1].Name)
	case t != "" && t != "trtllm": // which is the default
		command += "--treatment " + launch.Quote([]string{t}) + " "
	}
	if c.run.Server {
		return command + "--server SERVER --ready URL --client CLIENT"
	}
	return command + "-- YOUR_BENCHMARK"
}

// OfCampaign answers whether the gain of a campaign exceeds its threshold.
func OfCampaign(r gain.Result, run gain.Run) Answer {
	c := &campaign{r, run}
	a := Answer{Verdict: Verdict(c.Verdict), Basis: campaignBasis(c), Numbers: campaignNumbers(c), Reasons: []string{},
		Next: []Step{}, Caveats: campaignCaveats(c)}
	what, g, place := c.Called(gain.Perfect).Label(), c.Gain, AtPoint(r)
	switch {
	case c.run.Left > 0 && !(c.Verdict.Refused() && g.N > 0): // a check that fails before any pair may pass yet
		a.Verdict = NoVerdict
		left := fmt.Sprintf("%d of %s left", c.run.Left, quantity.Count(c.run.Left+c.run.Launches, "launch"))
		a.Line = fmt.Sprintf("Unfinished: %s.", left)
		if g.Low.Defined() {
			a.Line = clause(fmt.Sprintf("Unfinished, %s; the gain is %s to %s", left,
				strings.TrimSuffix(quantity.Change(g.Low), " %"), quantity.Change(g.High)), place, a.Line)
		}
		a.Next = append(a.Next, Step{"Run the rest.", "moebalance bench --resume " +
			launch.Quote([]string{c.run.Folder})})
	case c.Verdict.Refused():
		a.refused(c)
		return a
	case !g.Estimate.Defined() && c.Design == gain.WithinLaunch:
		a.Line = "No decision: no launch has a complete block."
	case !g.Estimate.Defined():
		a.Line = "No decision: no pair of launches is complete."
	case !g.Low.Defined() && c.Design == gain.WithinLaunch:
		a.Line = "No decision: 1 block is too few for an interval (at least 2)."
	case !g.Low.Defined():
		a.Line = fmt.Sprintf("No decision: %s too few for an interval (at least %d).", are(g.N, "pair"),
			gain.MinPairs(cmp.Or(c.run.Confidence, gain.DefaultConfidence)))
	case c.Verdict == gain.NoVerdict:
		a.oneLaunch(c, place)
	case c.Verdict == gain.Inconclusive:
		a.open(c, place)
	case c.Verdict == gain.Equal:
		a.Line = fmt.Sprintf("%s and %s are equally fast, within 1 %%.", c.Called(gain.Normal), c.Called(gain.Perfect))
	case len(c.Arms) == 2:
		a.Line = fmt.Sprintf("%s is %s than %s%s.", c.Called(gain.Perfect), speed(g.Estimate, ""),
			c.Called(gain.Normal), place)
	default:
		a.Line = shown(what, g, c.Verdict, place+caution(c))
	}
	a.Reasons = append(campaignReasons(c), a.Reasons...)
	if c.Chance {
		a.Reasons = append(a.Reasons, "Random routing is even only on average, so this is not the gain of balance.")
	}
	if text := doses(c.Result); text != "" {
		a.Reasons = append([]string{sentence(text)}, a.Reasons...)
	} else if c.Share != nil {
		a.Reasons = append(a.Reasons, shareOf(*c.Share))
	}
	a.Reasons = a.Reasons[:min(3, len(a.Reasons))]
	if c.Verdict == gain.Significant && len(a.Next) == 0 && c.run.Folder != "" {
		a.Next = append(a.Next, Step{"See it as a page.", "moebalance report -o report.html " +
			launch.Quote([]string{c.run.Folder})})
	}
	if len(c.run.Traces) > 0 && len(a.Next) < 2 {
		a.Next = append(a.Next, Step{"Compare the profiled arms.", "moebalance compare " + launch.Quote(c.run.Traces)})
	}
	return a
}

// shown says what the interval of a gain shows, at a place.
func shown(what string, g gain.Gain, v gain.Verdict, place string) string {
	switch {
	case v == gain.Inconclusive && g.Low > 0:
		return fmt.Sprintf("Undecided: %s is %s to %s faster%s.", what,
			strings.TrimSuffix(quantity.Percent(g.Low), " %"), quantity.Percent(g.High), place)
	case v == gain.Inconclusive:
		return fmt.Sprintf("No decision: the gain is between %s and %s%s.", quantity.Change(g.Low),
			quantity.Change(g.High), place)
	case g.Low <= 0 && g.High >= 0:
		return fmt.Sprintf("No gain shown: speed changes by %s to %s%s.", quantity.Change(g.Low), quantity.Change(g.High),
			place)
	}
	return fmt.Sprintf("%s is %s%s.", capital(what), speed(g.Estimate, ""), place)
}

// gainOf is a measured gain; that of one launch has a widened interval.
func gainOf(g gain.Gain) Number {
	label := "gain"
	if g.Method == gain.OneLaunch {
		label = "gain, widened interval"
	}
	return Number{label, g.Estimate, Fraction, g.Low, g.High, Measured}
}

// campaignReasons are the gains at other loads, and what leads the gain.
func campaignReasons(c *campaign) (out []string) {
	if text := elsewhere(c.Result); text != "" {
		out = append(out, sentence(text))
	}
	for _, check := range c.Leading() {
		if c.Verdict != gain.Inconclusive || check.Name != gain.CheckOutliers || len(c.Outliers) == 0 {
			out = append(out, sentence(said(check)))
		}
	}
	if c.Crossover != nil {
		if text := crossover(c.Result); text != "" {
			out = append(out, sentence(text))
		}
	}
	return out
}

// oneLaunch is the answer of blocks of one launch, which does not show how launches differ.
func (a *Answer) oneLaunch(c *campaign, place string) {
	what, g := c.Called(gain.Perfect).Label(), c.Gain
	a.Line = fmt.Sprintf("One launch cannot decide: %s is %s%s.", what, speed(g.Estimate, ""), place)
	if g.Low <= 0 && g.High >= 0 {
		a.Line = fmt.Sprintf("One launch cannot decide: speed changes by %s to %s%s.", quantity.Change(g.Low),
			quantity.Change(g.High), place)
	}
	a.Next = append(a.Next, Step{"Start the server anew for each of five launches.", oneServer})
}

// open is the answer of an interval that contains the threshold.
func (a *Answer) open(c *campaign, place string) {
	unit := c.unit()
	a.Line = shown(c.Called(gain.Perfect).Label(), c.Gain, c.Verdict, place)
	enough, known := toDecide(c.Result, unit)
	switch {
	case len(c.Outliers) > 0:
		a.outliers(c, place)
	case known:
		a.Reasons = append(a.Reasons, sentence(enough+" should decide"))
		if s := c.Precision.BlockShare; s > 0.5 {
			a.Reasons = append(a.Reasons, fmt.Sprintf("Blocks explain %s of the spread: more per launch (--blocks) help, "+
				"too.", quantity.Percent(s)))
		}
	default:
		a.Reasons = append(a.Reasons, fmt.Sprintf("More %s are no cure at this noise between launches.", many(unit)))
	}
	few := known && c.PairsNeeded < manyLaunches && !warned(c, gain.CheckOutliers)
	switch {
	case c.Design == gain.WithinLaunch && known:
		a.Next = append(a.Next, Step{"Run more launches.", c.again(float64(c.PairsNeeded))})
	case c.Design == gain.WithinLaunch:
	case few:
		a.Next = append(a.Next, Step{"Run more pairs.", c.again(float64(c.PairsNeeded))})
	case len(c.Arms) == 2:
	case c.run.Server:
		a.Next = append(a.Next, Step{"Hold both arms in each launch, so that launches may differ.", oneServer})
	case len(c.Outliers) > 0:
		a.Next = append(a.Next, Step{"Repeat it on a quiet machine.", c.again(float64(c.Gain.N))})
	default:
		a.Next = append(a.Next, Step{"Repeat it with longer runs, which vary less.", c.again(float64(c.Gain.N))})
	}
}

func many(unit string) string { return strings.TrimPrefix(quantity.Count(2, unit), "2 ") }

// The practical limits of pairs, and of launches that hold all arms.
const (
	manyPairs    = 1000
	manyLaunches = 100
)

// toDecide says how many pairs or launches in all would decide, with their range; false
// where that is above a practical limit, or not known.
func toDecide(r gain.Result, unit string) (text string, ok bool) {
	if limit := map[string]router.Number{"launch": manyLaunches, "pair": manyPairs}[unit]; !(r.PairsNeeded < limit) {
		return "", false
	}
	most := "1,000 or more"
	if r.PairsNeededHigh < manyPairs {
		most = fmt.Sprintf("%.0f", r.PairsNeededHigh)
	}
	return fmt.Sprintf("about %s in all (%.0f to %s, as the spread between %s is known)",
		quantity.Count(int(r.PairsNeeded), unit), r.PairsNeededLow, most, many(unit)), true
}

// OfCampaignWith is the answer of a campaign beside traces of both arms, which tell how much
// of the gain a placement of experts can reach. The gain is the measured one.
func OfCampaignWith(c gain.Result, run gain.Run, traces *diff.Comparison) Answer {
	run.Traces = nil // which are these
	a, p := OfCampaign(c, run), traces.Split.Placement
	if c.Verdict != gain.Significant || run.Left > 0 || !traces.Split.Known() || len(c.Arms) > 0 {
		return a
	}
	alone := Number{"gain of even ranks alone", p.GainBound, Fraction, p.Low, p.High, Predicted}
	a.Numbers = append(a.Numbers[:min(len(a.Numbers), 4)], alone)
	what := fmt.Sprintf("a placement alone would gain about %s by the traces", quantity.Percent(p.GainBound))
	if p.High < router.Number(c.Threshold) {
		a.Reasons = append([]string{fmt.Sprintf("Do not expect the %s from placement: %s.", quantity.Percent(c.Gain.Estimate),
			what)}, a.Reasons...)
	} else {
		a.Next = append([]Step{{sentence(what + "; place the experts, then measure again"),
			"moebalance place --ep RANKS --judge OTHER_COUNTS COUNTS"}}, a.Next...)
	}
	if l, ok := mostLoss(traces); ok {
		a.Reasons = append(a.Reasons, l)
	}
	a.Reasons, a.Next = a.Reasons[:min(3, len(a.Reasons))], a.Next[:min(2, len(a.Next))]
	return a
}

// AtPoint is the point whose gain the campaign's is; empty where there is one load.
func AtPoint(r gain.Result) string {
	for _, p := range r.Points {
		g := p.Gain
		if g.Estimate == r.Gain.Estimate && (g.Low == r.Gain.Low || !g.Low.Defined() && !r.Gain.Low.Defined()) {
			return atPoint(p)
		}
	}
	return ""
}

func (a *Answer) refused(c *campaign) {
	head := capital(string(c.Verdict)) + ": "
	a.Line = head + "a check failed, so the gain decides nothing."
	var failed []string
	for _, check := range c.Failed() {
		failed = append(failed, said(check))
	}
	if len(failed) > 0 {
		a.Line, a.Reasons = refusal(head, failed, a.Line)
	}
	switch {
	case c.Verdict == gain.Invalid && c.Balance != gain.Measured && len(c.Arms) != 2 && c.run.Treatment != "hook":
		next := Step{"Let the hook balance: its counts prove it.", oneServer}
		if !c.run.Server && c.Design != gain.WithinLaunch {
			next.Command = "moebalance bench --treatment hook -- YOUR_BENCHMARK"
		}
		a.Next = append(a.Next, next)
	case c.run.Folder != "":
		a.Next = append(a.Next, Step{"See all checks.", "moebalance compare --table checks " +
			launch.Quote([]string{c.run.Folder})})
	}
}

// outliers says which launches leave a campaign open, and what to do.
func (a *Answer) outliers(c *campaign, place string) {
	var numbers []int
	slow, fast := 0, 0
	for _, o := range c.Outliers {
		if o.Launch.Defined() {
			numbers = append(numbers, int(o.Launch))
		}
		if (o.Change < 0) == c.Metric.HigherIsBetter {
			slow++
		} else {
			fast++
		}
	}
	n, how := len(c.Outliers), "far off"
	switch {
	case c.Design == gain.WithinLaunch: // it is the gain that is far off
	case fast == 0:
		how = "slow"
	case slow == 0:
		how = "fast"
	}
	what := quantity.Count(n, "launch")
	if len(numbers) == n && n <= 2 {
		what = strings.ReplaceAll(quantity.Numbered("launch", numbers), ",", " and")
	}
	was := map[bool]string{true: "was", false: "were"}[n == 1]
	whole := func(f router.Number) string { return strings.TrimSuffix(quantity.Change(f), " %") }
	a.Line = fmt.Sprintf("No decision: %s %s %s; the gain is between %s and %s%s.", what, was, how, whole(c.Gain.Low),
		quantity.Change(c.Gain.High), place)
	if n > 2 && len(numbers) == n {
		a.Reasons = append(a.Reasons, sentence(fmt.Sprintf("these were %s", quantity.Numbered("launch", numbers))))
	}
	if len(numbers) == n && n > 1 && numbers[n-1]-numbers[0] == n-1 {
		a.Reasons = append(a.Reasons, "They ran back to back: look for what disturbed the machine then.")
	} else {
		a.Reasons = append(a.Reasons, "Look for what disturbed the machine then, and repeat the campaign.")
	}
}

// warned reports whether a check of this name warns.
func warned(c *campaign, name string) bool {
	return slices.ContainsFunc(c.Checks, func(check gain.Check) bool {
		return check.Name == name &&
			check.Status == gain.Warn
	})
}

// caution is what a reader has to know before the gain, in the line itself; empty for most.
func caution(c *campaign) string {
	switch {
	case warned(c, gain.CheckExplained):
		return ", more than the rank load explains"
	case warned(c, gain.CheckServer):
		return ", if the client measured the right server"
	case warned(c, gain.CheckRate):
		return ", at a request rate that fixes throughput"
	}
	return ""
}

func campaignBasis(c *campaign) string {
	text := fmt.Sprintf("interval of %s", quantity.Count(c.Gain.N, c.unit()))
	threshold := quantity.Confidence(c.Threshold)
	switch c.Verdict {
	case gain.Significant, gain.Faster:
		text += " above the threshold of " + threshold
	case gain.NotSignificant:
		text += " below the threshold of " + threshold
	case gain.Inconclusive:
		text += " contains the threshold of " + threshold
	case gain.Invalid, gain.NotComparable:
		return quantity.Count(c.Gain.N, "complete "+c.unit())
	}
	if !c.Gain.Low.Defined() {
		text = "no interval from " + quantity.Count(c.Gain.N, c.unit())
	}
	if c.Gain.Method == gain.OneLaunch {
		_, blocks := gained(c)
		text = fmt.Sprintf("one launch, %s · launch sd of %.1f points assumed", quantity.Count(len(blocks), "block"),
			100*gain.LaunchSD)
	}
	if len(c.Arms) == 2 {
		return text
	}
	return text + " · balance " + map[gain.Grade]string{gain.Measured: "measured",
		gain.Claimed: "claimed, not measured", gain.None: "not proved"}[grade(c)]
}

func grade(c *campaign) gain.Grade {
	if c.Balance == "" {
		return gain.None
	}
	return c.Balance
}

func campaignNumbers(c *campaign) []Number {
	g := c.Gain
	if c.Verdict.Refused() || !g.Estimate.Defined() {
		return []Number{}
	}
	out := []Number{gainOf(g)}
	if len(c.Outliers) > 0 && g.MedianLow.Defined() {
		out = append(out, Number{"gain by the arms' medians", g.MedianEstimate, Fraction, g.MedianLow, g.MedianHigh,
			Measured})
	}
	unit, gains := gained(c)
	if len(gains) == 0 || len(c.Points) > 0 {
		return out
	}
	positive := 0
	for _, x := range gains {
		if x > 0 {
			positive++
		}
	}
	return append(out, NumberOf(many(unit)+" that gain", router.Number(positive), outOf(len(gains)), Measured),
		NumberOf("smallest gain of a "+unit, slices.Min(gains), Fraction, Measured))
}

// gained are the gains of the complete pairs or launches, or of the blocks of one launch.
func gained(c *campaign) (unit string, gains []router.Number) {
	unit = c.unit()
	for _, p := range c.Pairs {
		if p.Status == gain.PairComplete && p.Arm == "" && p.Gain.Defined() {
			gains = append(gains, p.Gain)
		}
	}
	if c.Gain.Method != gain.OneLaunch {
		return unit, gains
	}
	gains = nil
	for _, l := range c.Launches {
		for _, b := range l.Blocks {
			if b.Status == gain.PairComplete && l.Arm == "" {
				gains = append(gains, b.Gain)
			}
		}
	}
	return "block", gains
}

func campaignCaveats(c *campaign) []Caveat {
	var out []router.Warning
	severities := map[string]Severity{}
	for _, check := range c.Checks {
		s, ok := map[gain.CheckStatus]Severity{gain.Fail: Doubt, gain.Warn: Warn, gain.Unknown: Unknown}[check.Status]
		if ok {
			out, severities[check.Name] = append(out, check.Warnings()...), s
		}
	}
	out = append(out, c.run.Warnings()...)
	list := caveats(out, func(w router.Warning) Severity { return cmp.Or(severities[w.Code], caveat.SeverityOf(w)) })
	for i, c := range list {
		if c.Code == gain.CheckProof { // whose name is what passes
			list[i].Code = map[Severity]string{Doubt: "balance_unproved", Warn: "balance_claimed",
				Unknown: "balance_unknown"}[c.Severity]
		}
	}
	return list
}
