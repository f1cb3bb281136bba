package answer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// campaign is a result with how its campaign stands.
type campaign struct {
	gain.Result
	run gain.Run
}

func (c *campaign) within() bool { return c.Design == gain.WithinLaunch }

// unit is the thing that is repeated: a launch or a pair.
func (c *campaign) unit() string {
	if c.within() {
		return "launch"
	}
	return "pair"
}

// builds reports a campaign of two builds, whose balance nobody asks about.
func (c *campaign) builds() bool { return c.Builds.Named() }

// OfCampaign answers whether the gain of a campaign exceeds its threshold.
func OfCampaign(r gain.Result, run gain.Run) Answer {
	c := &campaign{r, run}
	k := knowing(campaignCaveats(c))
	k.verdict, k.basis = Verdict(c.Verdict), campaignBasis(c)
	k.repeats(c)
	if c.Verdict.Refused() && !(c.run.Left > 0 && c.Gain.N == 0) { // a check that fails before any pair may pass yet
		return k.tell(k.failed(c))
	}
	k.gains(c)
	return k.tell(k.decided(c))
}

// gain is a measured gain: its number and the clause that says it, by whether its interval contains 0.
func (k *known) gain(g gain.Gain, v Verdict, what string) {
	k.verdict = v
	k.know("what", what, "gain", g.Estimate, "low", g.Low, "high", g.High)
	label, said := "gain", "said.gain"
	if g.Method == gain.OneLaunch {
		label = "gain, widened interval"
	}
	k.add("gain", Number{label, g.Estimate, Fraction, g.Low, g.High, Measured})
	switch undecided := v == Verdict(gain.Inconclusive); {
	case undecided && g.Low > 0:
		said = "said.undecided"
	case (undecided || v == NoVerdict) && g.Low <= 0 && g.High >= 0:
		said = "said.between"
	case g.Low <= 0 && g.High >= 0:
		said = "said.unshown"
	}
	k.know("said", k.say(said))
}

// gains are the gain of a campaign, how its units agree, and what imbalance costs.
func (k *known) gains(c *campaign) {
	k.know("place", AtPoint(c.Result))
	k.gain(c.Gain, k.verdict, c.Called(gain.Perfect).Label())
	k.dose(c)
	for _, p := range c.Points {
		if g := p.Gain; !p.Leads && g.Estimate.Defined() {
			k.know("at", named(p.Name, fmt.Sprintf("%g", p.Value)), "at_gain", g.Estimate, "at_low", g.Low, "at_high", g.High)
			k.because("points", k.say("point"))
		}
	}
	for _, check := range c.First() {
		k.because("checks", said(check))
	}
	shares := slices.DeleteFunc(c.Leading(), func(c gain.Comparison) bool { return c.Share == nil })
	if len(shares) > 0 && shares[0].Share.High > 0 { // an arm that is more uneven than normal recovers nothing
		s := shares[0].Share
		k.know("share_arm", string(shares[0].Arm), "share", s.Estimate, "share_low", s.Low, "share_high", s.High)
	}
	if c.Chance {
		k.know("chance", gain.ChanceArm.Label())
	}
	if c.Verdict == gain.NotSignificant && c.Gain.High > 0 {
		k.know("below", c.Threshold)
	}
	for _, name := range []string{gain.CheckRate, gain.CheckExplained} { // of a gain that is not all balance's
		if c.warns(name) {
			k.know("caution", k.say("caution."+name))
		}
	}
}

// decided picks the line of a campaign that no check refuses.
func (k *known) decided(c *campaign) string {
	g, least := c.Gain, gain.MinPairs
	if c.within() {
		least = gain.MinLaunches
	}
	switch {
	case c.run.Left > 0:
		k.know("left", c.run.Left, "all", c.run.Left+c.run.Launches)
		if !g.Low.Defined() {
			k.know("place", "")
		}
		return "bench.unfinished"
	case c.warns(gain.CheckCopies):
		return "bench.copies"
	case !g.Low.Defined() || !g.Estimate.Defined():
		k.know("more", least, "complete", quantity.Count(g.N, "complete "+c.unit()))
		return "bench.few"
	case c.Verdict == gain.NoVerdict:
		return "bench.one_launch"
	case c.Verdict == gain.Inconclusive:
		return k.open(c)
	case c.builds():
		return map[bool]string{true: "bench.equal", false: "bench.builds"}[c.Verdict == gain.Equal]
	case c.Verdict == gain.Significant:
		return "bench.significant"
	}
	return "bench.below"
}

// manyUnits is the practical limit of pairs and launches.
const manyUnits = 100

// open picks the line of an interval that contains the threshold, and says what would decide.
func (k *known) open(c *campaign) string {
	needed := c.PairsNeeded
	if needed.Defined() {
		k.know("needed", quantity.Count(int(needed), c.unit()))
	}
	switch {
	case needed < manyUnits && !c.warns(gain.CheckOutliers):
		k.know("more", needed)
	case c.run.Server && !c.within() && !c.builds():
		k.know("one_server", k.values["again"])
	}
	if c.Outliers() == 0 {
		return "bench.open"
	}
	k.know("far", c.Outliers(), "said", k.say("said.between"))
	return "bench.outliers"
}

// repeats is how a campaign of its kind is run anew, as far as it knows its command.
func (k *known) repeats(c *campaign) {
	run, flag, treatment := c.run, "--pairs", c.run.Treatment
	if c.within() {
		flag, treatment = "--launches", "hook"
	}
	if c.builds() || treatment == "trtllm" { // which is the default
		treatment = ""
	}
	k.know("folder", word(run.Folder), "flag", flag, "treatment", word(treatment), "again", run.Again,
		"units", many(c.unit()), "n", c.Gain.N, "least", max(gain.MinPairs, c.Gain.N), "load_to_fill", loadToFill)
	if c.builds() {
		k.builds(c.Builds[0], c.Builds[1])
		k.know("again", cmp.Or(run.Again, fmt.Sprint(k.values["arms"], " -- YOUR_BENCHMARK {arm}")))
	}
	if run.Folder != "" && !run.Server && !c.within() {
		k.know("benchmark", c.Command)
	}
	if run.Ranks > 0 {
		k.know("ranks", run.Ranks)
	}
	if hooked.MatchString(run.Format) && !c.builds() { // the hook compares no builds
		k.hooked("hook")
	}
}

// hooked begins the formats of engines that the hook serves.
var hooked = regexp.MustCompile(`^(sglang|vllm|serving)`)

// launcher begins a command that starts ranks itself.
var launcher = regexp.MustCompile(`^(mpirun|mpiexec|srun|trtllm-llmapi-launch) `)

// failed picks the line of a campaign that checks refuse, and how balance is proved where that is missing.
func (k *known) failed(c *campaign) string {
	why := failures(c.Result)
	if len(why) == 0 {
		why = []string{"a check failed, so the gain decides nothing"}
	}
	k.know("verdict", string(c.Verdict))
	k.refuse(why)
	said := strings.Join(why, " ")
	failed := func(name string) bool {
		return slices.ContainsFunc(c.Failed(), func(k gain.Check) bool { return k.Name == name })
	}
	unproved := failed(gain.CheckProof) && !failed(gain.CheckWork) &&
		!strings.Contains(said, gain.BalancedToo) // which no better proof mends
	switch treatment := c.run.Treatment; {
	case !unproved || treatment == "hook":
		return "bench.refused"
	case treatment != "" && treatment != "trtllm":
		k.know("treatment", "hook")
		return "bench.unproved"
	case treatment == "" && strings.Contains(said, "--trust-arms"): // else they were trusted, or say otherwise
		k.know("trusted", c.run.Reports)
	}
	if launcher.MatchString(c.Command) { // of ranks that do not show the switch: it goes
		k.know("benchmark", "")
	}
	return "bench.unproved_trt"
}

// warns reports whether a check of this name warns.
func (c *campaign) warns(name string) bool {
	return slices.ContainsFunc(c.Checks, func(check gain.Check) bool {
		return check.Name == name && check.Status == gain.Warn
	})
}

func many(unit string) string { return strings.TrimPrefix(quantity.Count(2, unit), "2 ") }

// AtPoint is the point whose gain the campaign's is: " at 32 tokens"; empty where there is one load.
func AtPoint(r gain.Result) string {
	for _, p := range r.Points {
		if p.Leads {
			return " at " + named(p.Name, fmt.Sprintf("%g", p.Value))
		}
	}
	return ""
}

// named are values of a point: 32 tokens, concurrency 8.
func named(point, values string) string {
	if strings.HasSuffix(point, "s") {
		return values + " " + point
	}
	return point + " " + values
}

// dose says what each 10 % of imbalance costs at the point of the gain, or, where no line goes through the arms,
// the largest load.
func (k *known) dose(c *campaign) {
	curved := slices.DeleteFunc(c.Leading(), func(c gain.Comparison) bool { return c.Dose == nil })
	if len(curved) == 0 || !curved[0].Dose.Slope.Defined() {
		return
	}
	d := curved[0].Dose
	k.know("cost", d.Slope/10, "cost_low", d.Low/10, "cost_high", d.High/10)
	if d.Bent {
		line := append([]gain.DoseArm{{}}, d.Line()...)
		most := line[len(line)-1]
		if k.know("load", most.MaxOverMean, "cost", most.Time-1); most.Low > 1 {
			k.because("dose", k.say("dose.bent"))
		}
		return
	}
	k.because("dose", k.say("dose"))
}

// sides are where the interval of a verdict lies.
var sides = map[gain.Verdict]string{gain.Significant: "above", gain.Faster: "above", gain.NotSignificant: "below",
	gain.Inconclusive: "contains"}

func campaignBasis(c *campaign) string {
	text := "interval of " + quantity.Count(c.Gain.N, c.unit())
	if side := sides[c.Verdict]; side != "" {
		text += fmt.Sprintf(" %s the %s threshold", side, quantity.Confidence(c.Threshold))
	}
	switch {
	case c.Verdict.Refused():
		return quantity.Count(c.Gain.N, "complete "+c.unit())
	case c.Gain.Method == gain.OneLaunch:
		text = fmt.Sprintf("one launch · launch sd of %.1f points assumed", 100*gain.LaunchSD)
	case !c.Gain.Low.Defined():
		text = "no interval from " + quantity.Count(c.Gain.N, c.unit())
	}
	if c.builds() {
		return text
	}
	return text + " · balance " + map[gain.Grade]string{gain.Measured: "measured", gain.Claimed: "claimed, not measured",
		gain.None: "not proved"}[cmp.Or(c.Balance, gain.None)]
}

func campaignCaveats(c *campaign) []Caveat {
	var out []router.Warning
	weights := map[string]caveat.Severity{}
	for _, check := range c.Checks {
		s, ok := map[gain.CheckStatus]caveat.Severity{gain.Fail: caveat.Doubt, gain.Warn: caveat.Warn,
			gain.Unknown: caveat.Unknown}[check.Status]
		if ok {
			out, weights[check.Name] = append(out, check.Warning()), s
		}
	}
	list := caveats(out, weights)
	for i, c := range list {
		if c.Code == gain.CheckProof { // whose name is what passes
			list[i].Code = map[caveat.Severity]string{caveat.Doubt: "balance_unproved", caveat.Warn: "balance_claimed",
				caveat.Unknown: "balance_unknown"}[c.Severity]
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
		if r.Verdict == gain.NotComparable && c.Name == gain.CheckWork { // it leads
			texts = append(texts[len(texts)-1:], texts[:len(texts)-1]...)
		}
	}
	return texts
}

// said words a check, in one clause for each case. Most that pass need no words.
func said(c gain.Check) string {
	found := c.Warning()
	if c.Status == gain.Pass && !caveat.Known(found) {
		return ""
	}
	return caveats([]router.Warning{found}, nil)[0].String()
}
