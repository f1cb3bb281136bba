package answer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
	k := knowing(caveats(t.AllWarnings(), map[string]caveat.Severity{doubt.Key(): caveat.Doubt}))
	alike := sized.ReplaceAllString(given, "")
	k.know("given", given, "torch", when(t.ByPyTorch(), "profiler"), "flags", strings.TrimSpace(typed.FindString(given)),
		"no_ep", alike, "other_flags", strings.TrimSpace(typed.FindString(alike)),
		"arm_name", t.Arm, "arm", gain.Arm(t.Arm).Label(), "ranks", len(t.Ranks), "gpu_ns", t.Coverage.GPUNS,
		"missing", positive(int(t.World)-len(t.Ranks)), "alone", when(t.World == 1, given))
	k.counted(t)
	switch {
	case t.Hidden.NS > t.Coverage.GPUNS:
		k.know("launches", t.Hidden.Launches, "hidden", t.Hidden.NS)
	case len(t.Ranks) < 2:
		k.know("few", []string{"none", "one"}[len(t.Ranks)])
	case doubt.Code != "":
		k.doubt(doubt)
		bare := counted.ReplaceAllString(given, "")
		k.know("uncounted", when(bare == given, given), "bare", bare, "many", when(len(t.Ranks) > 1, "ranks"))
		k.steps = k.next("mend." + doubt.Key() + "|all|again")
	default:
		k.judge(t, given)
	}
	return k.tell("trace")
}

// counted names the steps that an answer is about: "3 of 13 steps", and where others were recorded too, their kind:
// "(prefill, 8192 tokens)".
func (k *known) counted(t *trace.Trace) {
	times := t.Times()
	n, all := len(times.StepsOf(imbalance.Counts)), len(times.Steps)
	steps := when(all > n, fmt.Sprintf("%d of ", n)) + quantity.Count(max(all, n), "step")
	k.know("of_steps", when(t.Bound.Steps > 0, steps), "step_ns", t.Bound.StepNS)
	if kind, others := t.OtherKinds(); kind != nil && len(others) > 0 {
		k.know("steps", fmt.Sprintf("%s (%s)", steps, kind.Name),
			"sized", when(len(t.Ranks) > 1 && strings.Contains(kind.Name, "token"), "tokens"))
	}
}

// doubt splits the words of a doubt: "kernels were lost: record less" is a fault, and how it is mended.
func (k *known) doubt(w router.Warning) {
	text := caveat.Text(w)
	at := strings.IndexAny(text+";", ":;")
	k.know("doubt", text[:at])
	k.because("remedy", strings.TrimLeft(text[at:], ":; "))
}

// judge gathers what is known of a trace whose expert time over ranks is: of each cause that leads, the value that
// its line has alone.
func (k *known) judge(t *trace.Trace, given string) {
	w, rows := &t.Waiting, worstFirst(t.Imbalance, func(r imbalance.Row) bool {
		return r.Level == router.LevelRank && r.Quantity == imbalance.Time && r.Flagged
	})
	basis := Measured
	if slices.ContainsFunc(t.Imbalance, func(r imbalance.Row) bool { return r.Basis == imbalance.Inferred }) {
		basis = Inferred
	}
	k.know("judged", string(basis), "modeled", when(basis == Inferred, "layers"))
	k.number("saved", "saved by even ranks", positive(t.Bound.SavedNS), NS, Inferred)
	k.number("loss", "loss of "+t.Bound.Of.ExpertTime()+" per step (max − mean)", t.Bound.LossNS, NS, basis)
	if o := imbalance.Summarize(t.Imbalance, router.LevelRank, imbalance.Time); o.Layers > 0 {
		k.know("experts", o.Imbalance)
		k.number("worst", fmt.Sprintf("worst imbalance (%s)", layer(t, o.WorstLayer)), o.WorstMaxOverMean-1, Fraction, basis)
		k.flat(warned(t.Warnings, trace.LoadWithoutTime), basis)
	}
	k.evened(t)
	k.waits(t)
	k.leadsTo(t, given)
	slow, by := t.SlowGPUs()
	if len(slow) > 0 {
		k.know("slow_ranks", slow, "lone", when(len(slow) == 1, "rank"), "by", by, "or",
			when(t.Attention == nil, "more tokens"))
		k.number("dense", "time of equal dense GEMMs on "+quantity.Numbered("rank", slow)+", over the others", by, Fraction,
			Measured)
	}
	stall := min(w.Cause.NS, w.WaitNS) // the last rank may make up for a part
	if w.Leads(t.Bound.LossNS, t.Bound.StepNS, true) {
		k.know("stall", stall)
	}
	if w.Leads(t.Bound.LossNS, t.Bound.StepNS, len(rows) > 0) {
		k.know("late", "launches", "waited", when(len(slow) == 0, "launches"))
		if rank := last(w); rank != nil && rank.Name == trace.LateHosts {
			stall = rank.Explained()
			k.know("on", rank.Rank, "stall", stall)
		}
		k.number("stall", "waiting for late launches per step", stall, NS, Measured)
	}
	if t.UnevenAttention() {
		k.know("attention", t.Attention.Imbalance)
		k.number("attention", "attention over ranks", t.Attention.Imbalance, Fraction, Measured)
	}
	if len(rows) > 0 {
		k.uneven(t, rows)
	}
	if len(slow) == 0 { // whose steps say nothing of load
		k.otherKinds(t)
	}
}

// leastWide is the gain from which both ends are told where the low one is below half of it.
const leastWide = 0.01

// evened is what even ranks and even tokens would gain: 6.2 %, or 4.9 to 8.3 % as late launches hide a part, or would.
func (k *known) evened(t *trace.Trace) {
	even := Number{"gain of even ranks", t.Bound.Estimate, Fraction, router.Undefined(), router.Undefined(), Inferred}
	k.know("even", even.Value, "little", when(even.Value < 0.0005, "gain"))
	p := t.Replay()
	late := p != nil && p.Undecided && t.Bound.InTime > 0.0005 && t.Warned(trace.LateLaunches) && t.Bound.Low.Defined()
	if late || even.Value >= leastWide && t.Bound.Low < even.Value/2 {
		even.Low, even.High = t.Bound.Low, t.Bound.High
		k.know("even", even.Low, "most_gain", even.High)
	}
	if p != nil {
		k.know("token_gain", max(p.EvenTokens.Estimate, 0))
		k.number("tokens", "gain of even tokens", p.EvenTokens.Estimate, Fraction, Inferred)
	}
	k.add("gain", even)
}

// waits says how long ranks wait and mostly why, where that matters, and what to look at on the host of the rank that
// arrives last. What Python did there is no doing of the profiler's.
func (k *known) waits(t *trace.Trace) {
	w := &t.Waiting
	if cause, much := w.Cause, quantity.Duration(w.Cause.NS); w.Matters(t.Bound.StepNS) {
		if cause.NS >= w.WaitNS || much == quantity.Duration(w.WaitNS) {
			much = "all" // where it is more, the rank has less of something else
		}
		k.know("wait", w.WaitNS, "cause", much, "did", string(cause.Did), "what",
			strings.Replace(cause.Name, trace.OtherCompute, trace.OtherCompute+" of the last rank", 1), "who",
			when(cause.Name == trace.ExpertTime && t.Bound.SavedNS > 0.9*cause.NS, "even ranks")) // the same loss
	}
	did := w.Did
	if rank := last(w); rank != nil {
		did = cmp.Or(rank.Did, did)
		k.know("last", rank.Rank)
	}
	k.know("suspect", when(t.ByPyTorch() && (did == "" || did == trace.Launches), "profiler"))
	k.because("host", k.say("host."+strings.ReplaceAll(string(did), " ", "_")))
}

// last is the rank for which the others wait most of the time, nil where there is none.
func last(w *trace.Waiting) *trace.Arrival {
	if len(w.Ranks) == 0 || 2*w.Ranks[0].WaitNS <= w.WaitNS {
		return nil
	}
	return &w.Ranks[0]
}

// uneven says who is slow where, and which expert is behind it. Load is only spoken of where it is recorded
// and agrees.
func (k *known) uneven(t *trace.Trace, rows []imbalance.Row) {
	first, where := rows[0], layer(t, rows[0].Layer)
	k.know("where", where, "several", when(len(rows) > 1, "layers"))
	for _, load := range t.Imbalance {
		switch flagged := load.Layer == first.Layer && load.Quantity == imbalance.Load && load.Flagged; {
		case flagged && load.Level == router.LevelExpert:
			k.know("expert", load.Worst, "expert_in", where, "expert_load", load.MaxOverMean, "null", load.NullP95)
		case flagged && load.Level == router.LevelRank && load.Worst == first.Worst:
			k.know("overloaded", "rank")
		}
	}
	switch {
	case first.Steps > 0 && 2*first.WorstSteps <= first.Steps: // no rank is the slowest in most steps
		k.know("changing", cmp.Or(when(len(rows) > 1, quantity.Count(len(rows), unit(t))), where))
	case !slices.ContainsFunc(rows, func(r imbalance.Row) bool { return r.Worst != first.Worst }):
		k.know("rank", first.Worst)
	}
}

// worstFirst are the rows of some layers, the most uneven first.
func worstFirst(rows []imbalance.Row, are func(imbalance.Row) bool) []imbalance.Row {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r imbalance.Row) bool { return !are(r) })
	slices.SortStableFunc(rows, func(a, b imbalance.Row) int { return cmp.Compare(b.MaxOverMean, a.MaxOverMean) })
	return rows
}

// flat is recorded load that is uneven where the time of experts is not, as a warning says.
func (k *known) flat(w router.Warning, basis Basis) {
	gain, known := w.Args["gain"].(float64)
	k.know("load", w.Args["load"], "time", w.Args["time"], "unsure", w.Args["unsure"], "even", w.Args["gain"],
		"little", when(known && gain < 0.0005, "gain"), "traced", w.Args["traced"])
	for label, by := range map[string]Basis{"load imbalance over ranks": Recorded, "time imbalance over ranks": basis,
		"gain of even ranks": Inferred} {
		name, _, _ := strings.Cut(label, " ")
		if v, ok := w.Args[name].(float64); ok {
			k.number(name, label, router.Number(v), Fraction, by)
		}
	}
}

// fewSteps of a kind tell little.
const fewSteps = 3

// balancedTime is how uneven the expert time of balanced routing is: in decode steps of real traces up to 0.016.
const balancedTime = 0.02

// few reports steps of so few tokens, "57 to 64 tokens", that learned routing leaves experts unread, whatever top-k is.
func few(size string) bool {
	words := append([]string{""}, strings.Fields(size)...)
	tokens, err := strconv.Atoi(words[max(0, len(words)-2)])
	return err == nil && tokens < 128
}

// otherKinds says what uneven ranks cost in each other kind of steps that is replayed. "Even" speaks of all with much
// of the expert time: an uneven one may lead.
func (k *known) otherKinds(t *trace.Trace) {
	_, others := t.OtherKinds()
	for _, p := range t.Replays {
		at := slices.IndexFunc(others, func(kind trace.StepKind) bool { return kind.Kind == p.Kind })
		if at < 0 || len(others) == len(t.StepKinds) {
			continue
		}
		other, low := others[at], router.Undefined()
		flagged := other.Time.Flagged > 0 && !p.Little
		if len(other.Steps) < fewSteps && !flagged {
			continue
		}
		phase, size := k.kind(other.Name)
		decode := phase == "decode" && few(size)
		if other.Time.Imbalance > gain.DefaultThreshold && !decode {
			low = positive(p.EvenRanks.Low)
		}
		k.know("kind_steps", len(other.Steps), "kind_all", len(t.Times().Steps), "kind_time", other.Time.Imbalance,
			"kind_gain", p.EvenRanks.Estimate, "kind_low", low, "kind_high", p.EvenRanks.High,
			"kind_none", when(p.EvenRanks.High < 0.0005, "nothing"),
			"kind_decode", when(decode && other.Time.Imbalance > balancedTime, phase))
		told := k.say("trace_kind")
		if k.kinds = append(k.kinds, told); flagged && k.values["uneven"] == nil {
			k.know("uneven", told)
			k.number("uneven", "gain of even ranks", p.EvenRanks.Estimate, Fraction, Inferred)
		}
	}
}

// kind knows a kind of steps, such as "decode, 64 tokens", by its phase and size.
func (k *known) kind(name string) (phase, size string) {
	phase, size, named := strings.Cut(name, ", ")
	k.know("kind", name, "kind_phase", when(named, phase), "kind_size", size)
	return phase, size
}

// leadsTo is what the next steps need: from uneven time on to the experts behind it, from these to a placement;
// the arms of one capture to their comparison.
func (k *known) leadsTo(t *trace.Trace, given string) {
	several, both := strings.Contains(given, " "), t.Warned("other_arms") // several are two sides to compare
	k.know("both", when(both && !several, given),
		"perfect", when(t.Arm == string(gain.Perfect) && !both, cmp.Or(when(several, "PERFECT"), given)))
	k.because("expert", caveat.Text(warned(t.Warnings, trace.OtherSteps)))
	found, model := when(!t.Warned(trace.OtherSteps), flag(given, "counts")), flag(given, "model") // if they were used
	k.know("counts", when(found != "", strings.TrimSpace(strings.TrimPrefix(found, "--counts ")+" "+model)), "model",
		strings.TrimPrefix(model, "--model "), "traces",
		argument.ReplaceAllString(typed.ReplaceAllString(given, ""), "--trace $0"), "hook", t.Treatment())
	for _, p := range t.Phases {
		k.exchanges(p.Phase, router.Number(p.CollectiveNS))
	}
}

// exchanges knows the phases of the blocks in which ranks exchange tokens.
func (k *known) exchanges(p trace.Phase, ns router.Number) {
	if ns > 0 && (p == trace.PhaseDispatch || p == trace.PhaseCombine) {
		k.know(string(p), ns)
	}
}

// typed finds the flags before the files of arguments, argument one of these.
var typed, argument = regexp.MustCompile(`^(?:--\S+ (?:'[^']*'|\S+) )*`), regexp.MustCompile(`(?:'[^']*'|\S)+`)

// counted finds the flags of counts beside a trace.
var counted = regexp.MustCompile(`--(?:counts|model) (?:'[^']*'|\S)+ `)

// sized finds the flag of how many ranks exchange tokens.
var sized = regexp.MustCompile(`--ep \S+ `)

// flag is a flag of arguments, with its value: "--model 'm 1' --ep 4 x", model → "--model 'm 1'".
func flag(given, name string) string {
	return regexp.MustCompile(`--` + name + ` (?:'[^']*'|\S)+`).FindString(given)
}

// unit is what the numbers of layers count: expert blocks where layers are unknown.
func unit(t *trace.Trace) string { return cmp.Or(when(t.Warned("blocks"), "block"), "layer") }

// layer names a layer of a trace.
func layer(t *trace.Trace, l router.OptInt) string {
	return strings.Replace(LayerName(l), "layer", unit(t), 1)
}

// LayerName names a layer in a sentence; where none is named, all are judged together.
func LayerName(l router.OptInt) string {
	return cmp.Or(when(l.Defined(), fmt.Sprintf("layer %d", l)), "all layers")
}
