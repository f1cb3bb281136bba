package answer

import (
	"cmp"
	"fmt"
	"regexp"
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

// unit is the thing that is repeated: a launch or a pair.
func (c *campaign) unit() string {
	if c.Design == gain.WithinLaunch {
		return "launch"
	}
	return "pair"
}

// builds reports a campaign of two builds, whose balance nobody asks about.
func (c *campaign) builds() bool { return len(c.Arms) == 2 }

// folder is the campaign's folder as an argument, empty where none is known.
func (c *campaign) folder() string { return launch.Quote([]string{c.run.Folder}) }

// benchmark is the measured command, where the campaign knows it: of reports, Command names the files.
func (c *campaign) benchmark() string {
	if c.run.Folder == "" || c.run.Server || c.Command == "" {
		return "YOUR_BENCHMARK"
	}
	return c.Command
}

// again adds the step that runs a campaign of its kind anew, with so many pairs or launches.
func (a *Answer) again(key string, c *campaign, n router.Number) {
	flag, treatment, benchmark, client := "--pairs", c.run.Treatment, c.benchmark(), "CLIENT"
	if key == "longer" {
		benchmark, client = "LONGER_BENCHMARK", "LONGER_CLIENT"
	}
	if c.builds() && !strings.Contains(benchmark, "{arm}") {
		benchmark += " {arm}"
	}
	what := "-- " + benchmark
	if c.Design == gain.WithinLaunch {
		flag, treatment = "--launches", "hook"
	}
	if treatment == "trtllm" { // which is the default
		treatment = ""
	}
	if c.run.Server {
		server := map[bool]string{true: "'SERVER {arm}'", false: "SERVER"}[c.builds()]
		what = fmt.Sprintf("--server %s --ready URL --client %s", server, client)
	}
	if c.builds() {
		treatment, what = "", fmt.Sprintf("--arm %s --arm %s %s", c.Arms[0].Name, c.Arms[1].Name, what)
	} else if treatment != "" {
		treatment = launch.Quote([]string{treatment})
	}
	a.next(key, "flag", flag, "n", fmt.Sprintf("%.0f", n), "treatment", treatment, "what", what, "units",
		many(c.unit()))
}

// OfCampaign answers whether the gain of a campaign exceeds its threshold.
func OfCampaign(r gain.Result, run gain.Run) Answer {
	c := &campaign{r, run}
	a := answering(campaignCaveats(c))
	a.Basis, a.Numbers = campaignBasis(c), campaignNumbers(c)
	if c.Verdict.Refused() && !(c.run.Left > 0 && c.Gain.N == 0) { // a check that fails before any pair may pass yet
		a.failed(c)
		return a.few()
	}
	a.atLoads(c.Result)
	a.judge(c)
	if s := c.Share; s != nil && s.High > 0 { // an arm that is more uneven than normal recovers nothing
		a.because("why.share", "arm", string(s.Arm), "share", s.Estimate, "low", s.Low, "high", s.High)
	}
	if c.Chance {
		a.because("why.chance")
	}
	a.onward(c)
	return a.few()
}

// judge is the line of a campaign, and what would decide an open one.
func (a *Answer) judge(c *campaign) {
	g, place, v := c.Gain, AtPoint(c.Result), Verdict(c.Verdict)
	what, within := c.Called(gain.Perfect).Label(), c.Design == gain.WithinLaunch
	switch {
	case c.run.Left > 0:
		args := []any{"left", c.run.Left, "all", c.run.Left + c.run.Launches, "place", ""}
		if g.Low.Defined() {
			args = append(args[:4], "place", place, "low", g.Low, "high", g.High)
		}
		a.say(NoVerdict, "bench.unfinished", args...)
		a.next("resume", "folder", c.folder())
	case !g.Estimate.Defined():
		a.say(v, "bench.no_unit", "unit", map[bool]string{true: "block of a launch", false: "pair of launches"}[within])
	case warned(c, gain.CheckCopies):
		a.say(v, "bench.copies")
		a.next("checks", "folder", c.folder())
	case !g.Low.Defined() && within:
		a.say(v, "bench.one_block")
	case !g.Low.Defined():
		a.say(v, "bench.few", "n", g.N, "least", gain.MinPairs)
		a.again("launches", c, gain.MinPairs)
	case c.Verdict == gain.NoVerdict:
		key := "bench.one_launch"
		if g.Low <= 0 && g.High >= 0 {
			key = "bench.one_open"
		}
		a.say(v, key, "n", g.N, "what", what, "gain", g.Estimate, "low", g.Low, "high", g.High, "place", place)
		a.next("five")
	case c.Verdict == gain.Inconclusive:
		a.shown(v, what, g, c.Threshold, place, "")
		a.open(c, place)
	case c.Verdict == gain.Equal:
		a.say(v, "bench.equal", "one", string(c.Called(gain.Normal)), "other", string(c.Called(gain.Perfect)))
	case c.builds():
		a.say(v, "bench.builds", "one", string(c.Called(gain.Normal)), "other", string(c.Called(gain.Perfect)), "gain",
			g.Estimate, "place", place)
	default:
		a.shown(v, what, g, c.Threshold, place, caution(c))
	}
	for _, check := range c.Leading() {
		a.reason(said(check))
	}
}

// open says what would decide an interval that contains the threshold.
func (a *Answer) open(c *campaign, place string) {
	enough, known := toDecide(c.Result, c.unit())
	switch {
	case len(c.Outliers) > 0:
		a.say(Verdict(c.Verdict), "bench.outliers", "n", len(c.Outliers), "low", c.Gain.Low, "high", c.Gain.High, "place", place)
	case known:
		a.reason(enough)
	default:
		args := []any{"units", many(c.unit())}
		if c.PairsNeeded.Defined() {
			args = append(args, "n", quantity.Count(int(c.PairsNeeded), c.unit()))
		}
		a.because("why.hopeless", args...)
	}
	switch few := known && c.PairsNeeded < manyLaunches && !warned(c, gain.CheckOutliers); {
	case c.Design == gain.WithinLaunch && known, few:
		a.again("launches", c, c.PairsNeeded)
	case c.run.Server && c.Design != gain.WithinLaunch && !c.builds():
		a.next("one_server")
	case len(c.Outliers) > 0:
		a.again("quiet", c, router.Number(c.Gain.N))
	default:
		a.again("longer", c, router.Number(c.Gain.N))
	}
}

// onward says what to do with a decided campaign: see it, then find where its gain comes from, and what
// would win it back.
func (a *Answer) onward(c *campaign) {
	if len(a.Next) > 0 {
		return
	}
	if c.run.Folder != "" {
		a.next("page", "folder", c.folder())
	}
	switch {
	case c.builds():
		a.next("builds", "load", loadToFill, "arm", "{arm}", "arms",
			fmt.Sprintf("--arm %s --arm %s", c.Arms[0].Name, c.Arms[1].Name))
	case c.Verdict == gain.Significant:
		a.next("trace")
		a.next("plan", "ranks", "")
	default:
		a.next("loads", "load", loadToFill)
	}
}

func many(unit string) string { return strings.TrimPrefix(quantity.Count(2, unit), "2 ") }

// The practical limits of pairs, and of launches that hold all arms.
const (
	manyPairs    = 1000
	manyLaunches = 100
)

// toDecide says how many pairs or launches in all would decide; false where that is above a
// practical limit, or not known.
func toDecide(r gain.Result, unit string) (text string, ok bool) {
	if limit := map[string]router.Number{"launch": manyLaunches, "pair": manyPairs}[unit]; !(r.PairsNeeded < limit) {
		return "", false
	}
	return caveat.Say("why.enough", "n", quantity.Count(int(r.PairsNeeded), unit)), true
}

// OfCampaignWith is the answer of a campaign beside traces of both arms, which tell how much
// of the gain a placement of experts can reach. The gain is the measured one.
func OfCampaignWith(c gain.Result, run gain.Run, traces *diff.Comparison) Answer {
	a, p := OfCampaign(c, run), traces.Split.Placement
	if c.Verdict != gain.Significant || run.Left > 0 || !traces.Split.Known() || len(c.Arms) > 0 {
		return a
	}
	alone := Number{"gain of even ranks alone", p.GainBound, Fraction, p.Low, p.High, Predicted}
	a.Numbers = append(a.Numbers[:min(len(a.Numbers), 4)], alone)
	if p.High < router.Number(c.Threshold) {
		a.Reasons = append([]string{caveat.Say("why.placement", "gain", c.Gain.Estimate, "alone", p.GainBound)},
			a.Reasons...)
	}
	a.mostLoss(traces)
	a.Next = nil
	a.next("plan", "ranks", len(traces.Ranks))
	return a.few()
}

func (a *Answer) failed(c *campaign) {
	failed := failures(c.Result)
	if len(failed) == 0 {
		failed = []string{caveat.Say("bench.failed")}
	}
	a.refuse(Verdict(c.Verdict), "bench.refused", failed)
	said := strings.Join(failed, " ")
	unproved := slices.ContainsFunc(c.Failed(), func(k gain.Check) bool { return k.Name == gain.CheckProof }) &&
		!strings.Contains(said, gain.BalancedToo) // which no better proof mends
	ranks, what := "RANKS", c.benchmark()
	if launcher.MatchString(what) { // of ranks that do not show the switch: it goes
		what = "YOUR_BENCHMARK"
	}
	if c.run.Ranks > 0 {
		ranks = fmt.Sprint(c.run.Ranks)
	}
	switch treatment := c.run.Treatment; {
	case unproved && treatment == "": // reports
		if strings.Contains(said, "--trust-arms") { // else they were trusted, or say otherwise
			a.next("trust", "given", "NORMAL PERFECT")
		}
		a.next("prove_trt", "n", least(c), "ranks", ranks, "what", what)
	case unproved && treatment == "trtllm": // which the hook does not serve
		a.next("prove_trt", "n", least(c), "ranks", ranks, "what", what)
		a.next("both_arms")
	case unproved && treatment != "hook":
		run := c.run
		run.Treatment = "hook"
		a.again("prove", &campaign{c.Result, run}, router.Number(least(c)))
	case c.run.Folder != "":
		a.next("checks", "folder", c.folder())
	default:
		a.next("measure")
	}
}

// launcher begins a command that starts ranks itself.
var launcher = regexp.MustCompile(`^(mpirun|mpiexec|srun|trtllm-llmapi-launch) `)

// least is the number of pairs of a campaign that is run anew: as many as before, and enough for a verdict.
func least(c *campaign) int { return max(gain.MinPairs, c.Gain.N) }

// warned reports whether a check of this name warns.
func warned(c *campaign, name string) bool {
	return slices.ContainsFunc(c.Checks, func(check gain.Check) bool {
		return check.Name == name && check.Status == gain.Warn
	})
}

// caution warns of a gain that is not all balance's, in the line itself; empty for most.
func caution(c *campaign) string {
	switch {
	case warned(c, gain.CheckExplained):
		return caveat.Say("caution.explained")
	case warned(c, gain.CheckRate):
		return caveat.Say("caution.rate")
	}
	return ""
}

func campaignBasis(c *campaign) string {
	text := fmt.Sprintf("interval of %s", quantity.Count(c.Gain.N, c.unit()))
	threshold := " the " + quantity.Confidence(c.Threshold) + " threshold"
	if c.Threshold == 0 {
		threshold = " 0 %"
	}
	switch c.Verdict {
	case gain.Significant, gain.Faster:
		text += " above" + threshold
	case gain.NotSignificant:
		text += " below" + threshold
	case gain.Inconclusive:
		text += " contains" + threshold
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
	if c.builds() {
		return text
	}
	return text + " · balance " + map[gain.Grade]string{gain.Measured: "measured", gain.Claimed: "claimed, not measured",
		gain.None: "not proved"}[cmp.Or(c.Balance, gain.None)]
}

func campaignNumbers(c *campaign) []Number {
	g := c.Gain
	if c.Verdict.Refused() || !g.Estimate.Defined() {
		return []Number{}
	}
	out := []Number{gainOf(g)}
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
	list := caveats(out, func(w router.Warning) Severity { return cmp.Or(severities[w.Code], caveat.SeverityOf(w)) })
	for i, c := range list {
		if c.Code == gain.CheckProof { // whose name is what passes
			list[i].Code = map[Severity]string{Doubt: "balance_unproved", Warn: "balance_claimed",
				Unknown: "balance_unknown"}[c.Severity]
		}
	}
	return list
}

// Worded is a result with the words of its checks.
func Worded(r gain.Result) gain.Result {
	r.Checks = slices.Clone(r.Checks)
	for i, c := range r.Checks {
		r.Checks[i].Text = said(c)
	}
	return r
}

// Why says why a result passes no gate: its failed checks, or the line of the answer.
func Why(r gain.Result, run gain.Run) string {
	return cmp.Or(strings.Join(failures(r), "; "), OfCampaign(r, run).Line)
}

// failures are the words of the failed checks.
func failures(r gain.Result) (texts []string) {
	for _, c := range r.Failed() {
		texts = append(texts, said(c))
	}
	return texts
}

// said words a check, in one clause for each case. Most that pass need no words.
func said(c gain.Check) string {
	found := slices.DeleteFunc(c.Warnings(), func(w router.Warning) bool {
		return c.Status == gain.Pass && !caveat.Known(w)
	})
	var texts []string
	for _, group := range caveats(found, func(router.Warning) Severity { return Note }) {
		texts = append(texts, group.String())
	}
	return strings.Join(texts, "; ")
}
