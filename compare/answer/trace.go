package answer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfTrace answers what uneven experts cost in the run of a trace. given are its captures
// as arguments of a command.
func OfTrace(t *trace.Trace, given string) Answer {
	doubt := t.Undecided()
	k := knowing(caveats(byFile(t.AllWarnings()), map[string]caveat.Severity{doubt.Key(): caveat.Doubt}))
	k.know("given", given, "ranks", len(t.Ranks))
	var line string
	switch {
	case t.Hidden.NS > t.Coverage.GPUNS:
		k.know("launches", t.Hidden.Launches, "hidden", t.Hidden.NS)
		line = "trace.hidden"
	case len(t.Ranks) < 2:
		if t.World > 1 {
			k.know("world", t.World)
		}
		line = "trace.one_rank"
	case doubt.Code != "":
		line = k.doubted(t, doubt, given)
	default:
		line = k.judged(t, given)
	}
	a := k.tell(line)
	a.Basis = traceBasis(t, a.Verdict)
	return a
}

// doubted picks the line of a trace that decides nothing: it says what is wrong, and a reason what mends it.
func (k *known) doubted(t *trace.Trace, doubt router.Warning, given string) string {
	k.doubt(doubt)
	for _, o := range t.Overall {
		if o.Level == router.LevelRank && o.Quantity == imbalance.Load {
			k.number("load", "load imbalance over ranks", o.Imbalance, Fraction, Recorded)
			k.number("load_worst", worstOf(t, o), o.WorstMaxOverMean-1, Fraction, Recorded)
		}
	}
	if len(k.numbers) == 0 {
		k.know("uncounted", given)
	}
	for _, line := range []string{"trace." + doubt.Key(), "trace." + doubt.Code} {
		if caveat.Lines[line].Text != "" {
			return line
		}
	}
	return "trace.unknown"
}

// doubt splits the words of a doubt: "kernels were lost: record less" is a fault, and how it is mended.
func (k *known) doubt(w router.Warning) {
	text := caveat.Text(w)
	at := strings.IndexAny(text+";", ":;")
	k.know("doubt", text[:at])
	k.because("remedy", strings.TrimLeft(text[at:], ":; "))
}

// judged picks the line of a trace whose expert time over ranks is known.
func (k *known) judged(t *trace.Trace, given string) string {
	rows, w := uneven(t), &t.Waiting
	if arm := gain.Arm(t.Arm); slices.Contains(gain.Arms[:], arm) {
		k.know("arm", arm.Label())
	}
	k.number("gain", "gain of even ranks", t.Bound.Gain, Fraction, Inferred)
	k.number("loss", "loss per step", t.Bound.LossNS, NS, basisOf(t))
	if o, ok := t.RankTime(); ok {
		k.number("worst", worstOf(t, o), o.WorstMaxOverMean-1, Fraction, basisOf(t))
	}
	k.costs(t)
	k.waits(t)
	k.leadsTo(t, given)
	rank, by, slower := t.SlowGPU()
	switch {
	case slower:
		k.know("slow_rank", rank, "by", by, "or", map[bool]string{true: "more tokens"}[t.Attention == nil])
		k.number("dense", fmt.Sprintf("time of equal dense GEMMs on rank %d, over the others", rank), by, Fraction, Measured)
		return "trace.slower_gpu"
	case w.Leads(t.Bound.LossNS, t.Bound.StepNS, len(rows) > 0):
		k.late(w)
		return "trace.late"
	case t.UnevenAttention():
		k.attention(t)
		return "trace.attention"
	case len(rows) > 0:
		k.uneven(t, rows)
		return "trace.uneven"
	case k.loadWithoutTime(t):
		return "trace.load_without_time"
	case k.unevenKind(t):
		return "trace.uneven_kind"
	case w.Leads(t.Bound.LossNS, t.Bound.StepNS, true):
		k.know("stall", min(w.Cause.NS, w.WaitNS)) // the last rank may make up for a part
		return "trace.even_late"
	}
	return "trace.even"
}

// costs says what even ranks would gain, and in which steps.
func (k *known) costs(t *trace.Trace) {
	even, _ := t.WhatIf(trace.EvenRanks)
	p, much := t.Replay(), "much"
	switch gain := t.Bound.Gain; {
	case !gain.Defined():
	case p != nil && p.Undecided && even.InTime > 0.0005 && t.Warned(trace.LateLaunches):
		k.know("most_gain", even.InTime)
		much += ".open"
	case gain < 0.0005:
		much += ".little"
	}
	k.know("gain", max(t.Bound.Gain, 0), "steps", counted(t))
	if t.Bound.Gain.Defined() {
		k.know("much", k.say(much))
	}
	k.know("costs", k.say("gain|gain.unknown"), "left", k.say("left|left.unknown"))
}

// counted names the steps that an answer is about, where others were recorded too: "3 of 13 steps (prefill,
// 8192 tokens)".
func counted(t *trace.Trace) string {
	kind, others := t.OtherKinds()
	if kind == nil || len(others) == 0 {
		return ""
	}
	times := t.Times(nil)
	return fmt.Sprintf("%d of %s (%s)", len(times.StepsOf(imbalance.Counts)), quantity.Count(len(times.Steps), "step"),
		kind.Name)
}

// waits says how long ranks wait and mostly why, where that matters, which step waits far longer, and what to
// look at on the host of the rank that arrives last.
func (k *known) waits(t *trace.Trace) {
	w := &t.Waiting
	if w.Matters(t.Bound.StepNS) {
		k.know("wait", w.WaitNS, "wait_cause", k.cause(w.Cause, w.WaitNS))
	}
	if len(w.Late) > 0 {
		l := w.Late[0]
		k.know("step", l.Step, "late", l.WaitNS, "late_rank", l.Rank, "late_cause", k.cause(l.Cause, l.WaitNS),
			"late_in", k.values["given"])
	}
	whose, did := "the ranks' CPUs", w.Did
	if len(w.Ranks) > 0 && 2*w.Ranks[0].WaitNS > w.WaitNS {
		whose, did = fmt.Sprintf("rank %d's CPU", w.Ranks[0].Rank), cmp.Or(w.Ranks[0].Did, did)
	}
	k.know("whose", whose)
	k.because("host", k.say("host."+string(did)))
}

// cause says for what ranks wait: the part that explains most of it, and how much.
func (k *known) cause(c trace.Cause, whole router.Number) string {
	if c.Name == "" {
		return k.say("cause.none")
	}
	much := quantity.Duration(c.NS)
	if c.NS >= whole || much == quantity.Duration(whole) {
		much = "all" // where it is more, the rank has less of something else
	}
	what := strings.Replace(c.Name, trace.OtherCompute, trace.OtherCompute+" of the last rank", 1)
	k.know("cause", much, "what", what, "did", string(c.Did))
	return k.say("cause")
}

// late says whose late launches stall whom, and how long: launches of a rank, or of ranks in turn.
func (k *known) late(w *trace.Waiting) {
	k.number("waiting", "waiting per step", w.WaitNS, NS, Measured)
	k.know("whom", "the ranks in turn", "stall", min(w.Cause.NS, w.WaitNS)) // the last rank may make up for a part
	if len(w.Ranks) > 0 && 2*w.Ranks[0].WaitNS > w.WaitNS && w.Ranks[0].Name == trace.LateHosts {
		k.know("on", w.Ranks[0].Rank, "whom", "the others", "stall", w.Ranks[0].WaitNS)
	}
}

// attention says how unequal the tokens of data-parallel ranks are, and what even tokens would gain.
func (k *known) attention(t *trace.Trace) {
	own := t.Attention
	k.know("attention", own.Imbalance, "costs", k.say("gain.unknown"))
	if o, ok := t.RankTime(); ok {
		k.know("experts", o.Imbalance)
	}
	if even, ok := t.WhatIf(trace.EvenTokens); ok && even.Gain.Defined() {
		k.know("token_gain", max(even.Gain, 0))
		k.know("costs", k.say("tokens"))
		k.number("tokens", "gain of even tokens", even.Gain, Fraction, Inferred)
	}
	k.number("attention", "attention over ranks", own.Imbalance, Fraction, Measured)
}

// uneven says who is slow where, and which expert is behind it. Load is only spoken of where it is recorded
// and agrees.
func (k *known) uneven(t *trace.Trace, rows []imbalance.Row) {
	first := rows[0]
	where, how := LayerName(t, first.Layer), "slowest"
	if load, ok := loadOf(t, first.Layer, router.LevelRank); ok && load.Flagged && load.Worst == first.Worst {
		how = "overloaded"
	}
	if load, ok := loadOf(t, first.Layer, router.LevelExpert); ok && load.Flagged {
		k.know("expert", load.Worst, "expert_in", where, "expert_load", load.MaxOverMean, "null", load.NullP95)
	}
	k.know("rank", first.Worst, "where", where, "how", how)
	k.know("slow", k.slow(rows))
}

// slow is the clause of who is slow in the layers of some rows.
func (k *known) slow(rows []imbalance.Row) string {
	first, many := rows[0], len(rows) > 1
	switch changing := first.Steps > 0 && 2*first.WorstSteps <= first.Steps; { // no rank is the slowest in most steps
	case changing:
		if many {
			k.know("where", quantity.Count(len(rows), "layer"))
		}
		return k.say("slow.changing")
	case many:
		k.know("most", ", most")
	}
	if slices.ContainsFunc(rows, func(r imbalance.Row) bool { return r.Worst != first.Worst }) {
		return k.say("slow.layers")
	}
	return k.say("slow.rank")
}

// uneven are the rows of layers whose expert time over ranks is flagged, the largest first.
func uneven(t *trace.Trace) []imbalance.Row {
	rows := slices.DeleteFunc(slices.Clone(t.Imbalance), func(r imbalance.Row) bool {
		return r.Level != router.LevelRank || r.Quantity != imbalance.Time || !r.Flagged
	})
	slices.SortStableFunc(rows, func(a, b imbalance.Row) int { return cmp.Compare(b.MaxOverMean, a.MaxOverMean) })
	return rows
}

func loadOf(t *trace.Trace, layer router.OptInt, level string) (imbalance.Row, bool) {
	i := slices.IndexFunc(t.Imbalance, func(r imbalance.Row) bool {
		return r.Layer == layer && r.Level == level && r.Quantity == imbalance.Load
	})
	if i < 0 {
		return imbalance.Row{}, false
	}
	return t.Imbalance[i], true
}

// loadWithoutTime reports recorded load that is uneven where the time of experts is not.
func (k *known) loadWithoutTime(t *trace.Trace) bool {
	time, ok := t.RankTime()
	for _, load := range t.Overall {
		if load.Level == router.LevelRank && load.Quantity == imbalance.Load && ok && t.Warned(trace.LoadWithoutTime) {
			k.know("load", load.Imbalance, "time", time.Imbalance)
			k.number("load", "load imbalance over ranks", load.Imbalance, Fraction, Recorded)
			k.number("time", "time imbalance over ranks", time.Imbalance, Fraction, basisOf(t))
			return true
		}
	}
	return false
}

// unevenKind reports steps of another kind, with a tenth of the expert time at least, that are uneven: "even"
// speaks of all of them.
func (k *known) unevenKind(t *trace.Trace) bool {
	own := t.Replay()
	for i := range t.Replays {
		p := &t.Replays[i]
		at := slices.IndexFunc(t.StepKinds, func(k trace.StepKind) bool { return k.Kind == p.Kind })
		if own == nil || p.Kind == own.Kind || len(p.WhatIf) == 0 || at < 0 || t.StepKinds[at].Time.Flagged == 0 {
			continue
		}
		other, even := &t.StepKinds[at], &p.WhatIf[0]
		k.know("kind_steps", len(other.Steps), "kind", other.Name, "uneven", other.Time.Imbalance, "kind_gain", even.Gain)
		k.number("kind_gain", "gain of even ranks", even.Gain, Fraction, Inferred)
		return true
	}
	return false
}

// leadsTo is what the next steps need: from uneven time on to the experts behind it, from these to a placement;
// the arms of one capture to their comparison.
func (k *known) leadsTo(t *trace.Trace, given string) {
	several := strings.Contains(given, " ") // which compare takes for two sides
	switch both := t.Warned("other_arms"); {
	case both && !several:
		k.know("both", given)
	case t.Arm == string(gain.Perfect) && !both:
		k.know("perfect", map[bool]string{true: "PERFECT", false: given}[several], "load_to_fill", loadToFill)
	case !both:
		k.know("load_to_fill", loadToFill)
	}
	counts := []string{modelFlag.FindString(given)}
	for _, found := range countsFlag.FindAllStringSubmatch(given, -1) {
		counts = append(counts, found[1])
	}
	if len(counts) > 1 {
		k.know("counts", strings.TrimSpace(strings.Join(counts, " ")))
	}
	k.hooked(t.Treatment())
}

// The recorded counts among the arguments of trace, and their model.
var countsFlag, modelFlag = regexp.MustCompile(`--counts (\S+)`), regexp.MustCompile(`--model \S+`)

// loadToFill is where the command of a benchmark takes the load of a point, which bench fills in.
const loadToFill = "{concurrency}"

// hooked is how the hook measures, where it is the switch that reaches the engine.
func (k *known) hooked(treatment string) {
	if treatment == "hook" {
		const server = "--server SERVER --ready URL --client "
		k.know("hooked", server+"CLIENT", "hooked_at_loads", server+"'CLIENT "+loadToFill+"'")
	}
}

func worstOf(t *trace.Trace, o imbalance.Summary) string {
	return fmt.Sprintf("worst imbalance (%s)", LayerName(t, o.WorstLayer))
}

func basisOf(t *trace.Trace) Basis {
	if imbalance.BasisOf(t.Imbalance) == imbalance.Inferred {
		return Inferred
	}
	return Measured
}

func traceBasis(t *trace.Trace, v Verdict) string {
	parts := []string{"inferred from one trace"}
	switch {
	case v == NoAnswer:
		parts[0] = quantity.Duration(float64(t.Coverage.GPUNS)) + " of kernels seen"
	case v == LateLaunches:
		parts[0] = "waits measured, gain inferred"
	case basisOf(t) == Measured:
		parts[0] = "loss measured in one trace, gain inferred"
	}
	if steps := t.Bound.Steps; steps > 0 && t.Bound.StepNS.Defined() {
		text := quantity.Count(steps, "step")
		if all := len(t.Times(nil).Steps); all > steps {
			text = fmt.Sprintf("%d of %s", steps, quantity.Count(all, "step"))
		}
		parts = append(parts, text+" of "+quantity.Duration(t.Bound.StepNS))
	}
	parts = append(parts, quantity.Count(len(t.Ranks), "rank"))
	if t.Arm != "" {
		parts = append(parts, t.Arm+" arm")
	}
	return strings.Join(parts, " · ")
}

// LayerName names a layer of a trace, or of counts, in a sentence; where none is named, all are judged
// together.
func LayerName(t *trace.Trace, l router.OptInt) string {
	if !l.Defined() {
		return "all layers"
	}
	return fmt.Sprintf("layer %d", l)
}
