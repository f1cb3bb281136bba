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

// OfCampaign answers whether the gain of a campaign exceeds its threshold.
func OfCampaign(r gain.Result, run gain.Run) Answer {
	k := knowing(checkCaveats(r.Checks))
	k.verdict = Verdict(r.Verdict)
	for _, c := range slices.Concat(r.First(), r.Failed()) {
		if k.know(c.Name, string(c.Status)); c.Name == gain.CheckAttention {
			k.because("rest", said(c))
			k.steps = k.next("tokens")
		}
		k.because("checks", when(c.Status == gain.Warn, said(c)))
	}
	k.repeats(r, run)
	k.evidence(r)
	if r.Verdict.Refused() && !(run.Left > 0 && r.Gain.N == 0) { // a check that fails before any pair may pass yet
		k.failed(r, run)
	} else {
		k.gains(r)
		k.decides(r, run)
	}
	return k.tell("bench")
}

// gain is a measured gain: its number, and where its interval contains 0 the value that its clause has alone.
func (k *known) gain(g gain.Gain, v Verdict, what string) {
	k.verdict = v
	k.know("what", what, "gain", g.Estimate, "low", g.Low, "high", g.High)
	k.add("gain", Number{"gain" + when(g.Method == gain.OneLaunch, ", widened interval"), g.Estimate, Fraction, g.Low,
		g.High, Measured})
	open, undecided := g.Low <= 0 && g.High >= 0, v == Verdict(gain.Inconclusive)
	k.know("undecided", when(undecided && g.Low > 0, what), "between", when(open, "gain"),
		"unshown", when(open && !undecided && v != Verdict(gain.NoVerdict), "gain"))
}

// gains are the gain of a campaign, how its units agree, and what imbalance costs.
func (k *known) gains(r gain.Result) {
	k.gain(r.Gain, k.verdict, r.Called(gain.Perfect).Label())
	for _, c := range r.Leading() {
		if s := c.Share; s != nil && s.High > 0 && k.values["share"] == nil { // of an arm more uneven than normal: nothing
			k.know("share_arm", string(c.Arm), "share", s.Estimate, "share_low", s.Low, "share_high", s.High)
		}
		if d := c.Dose; d != nil && d.Slope.Defined() && k.values["cost"] == nil {
			k.dose(d)
		}
	}
	for _, p := range r.Points {
		k.know("loads", "") // they are measured
		if g, at := p.Gain, named(p.Name, p.Value); p.Leads {
			k.know("place", " at "+at)
		} else if g.Estimate.Defined() {
			k.know("at", at, "at_gain", g.Estimate, "at_low", g.Low, "at_high", g.High)
			k.because("points", k.say("point"))
		}
	}
}

// dose says what each 10 % of imbalance costs, or, where no line goes through the arms, the largest load.
func (k *known) dose(d *gain.Dose) {
	if !d.Bent {
		k.know("cost", d.Slope/10, "cost_low", d.Low/10, "cost_high", d.High/10, "own", d.Learned()/10)
	} else if line := d.Line(); len(line) > 0 && line[len(line)-1].Low > 1 {
		k.know("load", line[len(line)-1].MaxOverMean, "cost", line[len(line)-1].Time-1)
	}
}

// manyUnits is the practical limit of pairs and launches; from ten times as many on, no number is told.
const manyUnits = 100

// decides gathers what leads before a verdict does, by how far a campaign is, and what would decide an open one.
func (k *known) decides(r gain.Result, run gain.Run) {
	if run.Left > 0 {
		k.verdict = Verdict(gain.NoVerdict)
	}
	k.know("left", positive(run.Left), "all", run.Left+run.Launches)
	switch {
	case !r.Gain.Low.Defined() || !r.Gain.Estimate.Defined():
		k.know("few", k.values["complete"])
	case r.Verdict == gain.NotSignificant && r.Gain.High > 0:
		k.know("below", r.Threshold)
	case r.Verdict == gain.Inconclusive:
		n := r.PairsNeeded
		k.know("more", "", "needed", when(n < 10*manyUnits, quantity.Count(int(n), fmt.Sprint(k.values["unit"]))))
		if n < manyUnits && k.values[gain.CheckOutliers] == nil {
			k.know("more", n)
		}
		if far := r.Outliers(); far > 0 {
			k.know("far", far, "undecided", "", "between", "gain")
		}
	}
}

// repeats is how a campaign of its kind is run anew, as far as it knows its command.
func (k *known) repeats(r gain.Result, run gain.Run) {
	unit, units, least, treatment := "pair", "pairs", gain.MinPairs, run.Treatment
	if r.Design == gain.WithinLaunch {
		unit, units, least, treatment = "launch", "launches", gain.MinLaunches, "hook"
	}
	if r.Builds.Named() || treatment == "trtllm" { // which is the default
		treatment = ""
	}
	k.know("folder", word(run.Folder), "treatment", word(treatment), "again", run.Again, "unit", unit, "units", units,
		"metric", flag(run.Again, "metric"), "n", r.Gain.N, "more", least, "ranks", positive(run.Ranks), "counts", "COUNTS",
		"complete", quantity.Count(r.Gain.N, "complete "+unit), "counted", quantity.Count(r.Gain.N, unit))
	if r.Builds.Named() {
		k.builds(r.Builds)
		if !strings.Contains(run.Again, "--arm ") {
			k.know("again", fmt.Sprint(k.values["arms"], " ", cmp.Or(run.Again, "-- YOUR_BENCHMARK"), " {arm}"))
		}
	} else if hooked.MatchString(run.Format) { // the hook compares no builds
		k.know("hook", "hook")
	}
	command := strings.ReplaceAll(r.Command, "{out}/", "") // which bench fills in, with other names in braces
	whole := run.Folder != "" && !run.Server && r.Design != gain.WithinLaunch && !strings.Contains(command, "{")
	k.know("benchmark", when(whole, command), "server", when(run.Server || r.Design == gain.WithinLaunch, "server"),
		"claimed", when(r.Balance == gain.Claimed && treatment != "hook", "claimed"))
}

// evidence is what a verdict rests on: an interval, and how the balance of the arms is known.
func (k *known) evidence(r gain.Result) {
	grade := map[gain.Grade]string{gain.Measured: "measured", gain.Claimed: "claimed, not measured"}[r.Balance]
	limit := router.Number(r.Threshold)
	k.know("threshold", positive(limit),
		"balance", when(!r.Builds.Named() && !r.Verdict.Refused(), cmp.Or(grade, "not proved")),
		"side", map[gain.Verdict]string{gain.Significant: "above", gain.Faster: "above", gain.NotSignificant: "below",
			gain.Inconclusive: when(r.Gain.Low <= limit && r.Gain.High >= limit, "contains")}[r.Verdict])
	switch {
	case r.Verdict.Refused():
		k.know("refused", k.values["complete"])
	case r.Gain.Method == gain.OneLaunch:
		k.know("sd", 100*gain.LaunchSD)
	case !r.Gain.Low.Defined():
		k.know("alone", k.values["counted"])
	}
}

// hooked begins the formats of engines that the hook serves, and of clients of any server; printing begins the formats
// of TensorRT-LLM, whose ranks print that they saw the switch.
var hooked = regexp.MustCompile(`^(sglang|vllm|serving|aiperf|evalscope|guidellm|inference|llmperf)`)
var printing = regexp.MustCompile(`^(trtllm|iteration|$)`)

// launcher is in a command that starts ranks itself; spawning is a program of TensorRT-LLM that otherwise spawns them.
var launcher = regexp.MustCompile(`\b(mpirun|mpiexec|srun|trtllm-llmapi-launch) `)
var spawning = regexp.MustCompile(`(?:^|[\s'])([^\s'=]*trtllm-(?:bench|serve|eval)|YOUR_BENCHMARK)(?:[\s']|$)`)

// failed says why checks refuse a campaign, and how balance is proved where that is missing.
func (k *known) failed(r gain.Result, run gain.Run) {
	why := Failures(r)
	k.refuse(why)
	said := strings.Join(why, " ")
	swapped := r.Swapped()
	k.know("swapped", when(swapped, run.Reports))
	switch byItself := run.Treatment == "" || run.Treatment == "trtllm"; {
	case run.Treatment == "hook", k.values[gain.CheckProof] != string(gain.Fail), swapped,
		k.values[gain.CheckWork] == string(gain.Fail), strings.Contains(said, gain.BalancedToo),
		strings.Contains(said, ", but the engine says"): // no better proof mends it
	case !byItself:
		k.know("unproved", "balance")
	default:
		k.know("trusted", when(run.Treatment == "" && strings.Contains(said, "--trust-arms"), run.Reports),
			"unrecorded", "arms", "unseen", when(printing.MatchString(run.Format), "switch"))
		if launcher.MatchString(run.Again) {
			k.know("launched", "launched")
		} else if at := spawning.FindStringSubmatchIndex(run.Again); at != nil {
			k.know("before", run.Again[:at[2]], "behind", run.Again[at[2]:])
		}
	}
}

// named is a point: 32 tokens, concurrency 8.
func named(point string, value float64) string {
	return cmp.Or(when(strings.HasSuffix(point, "s"), quantity.Plain(value)+" "+point), point+" "+quantity.Plain(value))
}

// checkCaveats are the checks that do not pass.
func checkCaveats(checks []gain.Check) []Caveat {
	var open []router.Warning
	weights := map[string]caveat.Severity{}
	for _, c := range checks {
		if c.Status != gain.Pass {
			open = append(open, c.Warning())
			weights[c.Name] = map[gain.CheckStatus]caveat.Severity{gain.Fail: caveat.Doubt, gain.Warn: caveat.Warn,
				gain.Unknown: caveat.Unknown}[c.Status]
		}
	}
	return caveats(open, weights)
}

// Worded is a result with the words of its checks.
func Worded(r gain.Result) gain.Result {
	r.Checks = slices.Clone(r.Checks)
	for i, c := range r.Checks {
		r.Checks[i].Text = said(c)
	}
	return r
}

// Failures are the words of the failed checks. Unequal work leads where it makes the arms not comparable.
func Failures(r gain.Result) (texts []string) {
	for _, c := range r.Failed() {
		if text := caveat.Text(c.Warning()); r.Verdict == gain.NotComparable && c.Name == gain.CheckWork {
			texts = slices.Insert(texts, 0, text)
		} else {
			texts = append(texts, text)
		}
	}
	return texts
}

// said words a check. Most that pass need no words.
func said(c gain.Check) string {
	found := c.Warning()
	return when(c.Status != gain.Pass || caveat.Known(found), caveats([]router.Warning{found}, nil)[0].String())
}
