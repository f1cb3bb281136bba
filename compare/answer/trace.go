package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

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
	a := answering(traceCaveats(t))
	switch why := t.Undecided(); {
	case t.Hidden.NS > t.Coverage.GPUNS:
		a.say(NoAnswer, "trace.hidden", "launches", t.Hidden.Launches, "ns", t.Hidden.NS)
		a.next("graphs")
	case len(t.Ranks) < 2:
		a.say(NoAnswer, "trace.one_rank")
		a.next("ranks")
	case why.Code != "":
		a.say(NoAnswer, "trace.unknown", "why", caveat.Brief(why))
		a.reason(caveat.Text(why))
		a.undecided(t, why, given)
	default:
		a.judged(t)
		a.look(t, given)
		if arm := gain.Arm(t.Arm); slices.Contains(gain.Arms[:], arm) {
			a.Line = caveat.Say("trace.under", "arm", arm.Label(), "line", strings.ToLower(a.Line[:1])+a.Line[1:])
		}
	}
	a.Basis = traceBasis(t, a.Verdict)
	return a.few()
}

// undecided says what would let a trace decide.
func (a *Answer) undecided(t *trace.Trace, why router.Warning, given string) {
	switch why.Code {
	case trace.FusedExperts:
		for _, o := range t.Overall {
			if o.Level == router.LevelRank && o.Quantity == imbalance.Load {
				a.number("load imbalance over ranks", o.Imbalance, Fraction, Recorded)
				a.number(worstOf(t, o), o.WorstMaxOverMean-1, Fraction, Recorded)
			}
		}
		if len(a.Numbers) == 0 {
			a.next("fused", "given", given)
		}
	case trace.CountsContradict:
		a.next("own_counts")
	case "no_experts", "unknown_kernels":
		a.next("names", "given", given)
		return
	}
	switch {
	case why.Code == "missing_ranks":
		a.next("all")
	case len(a.Next) == 0:
		a.next("ranks")
	}
}

// judged is the answer of a trace whose expert time over ranks is known.
func (a *Answer) judged(t *trace.Trace) {
	rows, w := uneven(t), t.Waiting
	a.number("gain of even ranks", t.Bound.Gain, Fraction, Inferred)
	a.number("loss per step", t.Bound.LossNS, NS, basisOf(t))
	rank, by, slower := t.SlowGPU()
	switch {
	case slower:
		a.slowGPU(t, rank, by)
	case w.Leads(t.Bound.LossNS, t.Bound.StepNS, len(rows) > 0):
		a.late(t)
		a.reason(checkHost(w))
	case t.UnevenAttention():
		a.attention(t)
	case len(rows) > 0:
		a.say(Uneven, "trace.uneven", "where", slow(t, rows), "gain", wouldGain(t, "gain"))
		a.loaded(t, rows)
		if own := t.Attention; own != nil && own.Imbalance > t.Bound.Gain {
			a.because("why.attention_too", "attention", own.Imbalance)
		}
		a.waits(t)
	default:
		a.even(t)
	}
	if o, ok := t.RankTime(); ok {
		a.number(worstOf(t, o), o.WorstMaxOverMean-1, Fraction, basisOf(t))
	}
}

func worstOf(t *trace.Trace, o imbalance.Summary) string {
	return fmt.Sprintf("worst imbalance (%s)", LayerName(t, o.WorstLayer))
}

// slowGPU is the answer where one rank takes longer whatever it runs: what balance would gain beside
// that cannot be told.
func (a *Answer) slowGPU(t *trace.Trace, rank int, by router.Number) {
	a.say(SlowerGPU, "trace.slower_gpu", "rank", rank, "by", by, "or", map[bool]string{true: "more tokens"}[t.Attention == nil])
	a.Numbers = nil
	a.number(fmt.Sprintf("time of equal dense GEMMs on rank %d, over the others", rank), by, Fraction, Measured)
	a.because("why.slower_gpu", "rank", rank)
	a.waits(t)
}

// attention is the answer where ranks hold unequal tokens of their own, and even tokens would gain more than
// even experts.
func (a *Answer) attention(t *trace.Trace) {
	own, experts := t.Attention, router.Undefined()
	if o, ok := t.RankTime(); ok {
		experts = o.Imbalance
	}
	gain, key := router.Undefined(), "gain.unknown"
	if w, ok := t.WhatIf(trace.EvenTokens); ok && w.Gain.Defined() {
		gain, key = w.Gain, "tokens"
	}
	a.say(AttentionUneven, "trace.attention", "attention", own.Imbalance, "experts", experts, "gain",
		caveat.Say(key, "gain", max(gain, 0), "steps", counted(t)))
	even := a.Numbers
	a.Numbers = nil
	a.number("gain of even tokens", gain, Fraction, Inferred)
	a.number("attention over ranks", own.Imbalance, Fraction, Measured)
	a.Numbers = append(a.Numbers, even...)
	if own.Tokens == nil {
		a.because("why.attention_inferred")
	} else {
		most := slices.Index(own.Tokens, slices.Max(own.Tokens))
		a.because("why.attention", "rank", t.Ranks[most].Rank, "tokens", own.Tokens[most], "mean",
			stat.Mean(own.Tokens, nil))
	}
	a.waits(t)
}

// loadWithoutTime is the answer where recorded load is uneven and the time of experts is not.
func (a *Answer) loadWithoutTime(t *trace.Trace) bool {
	for _, load := range t.Overall {
		time, ok := t.RankTime()
		if load.Level == router.LevelRank && load.Quantity == imbalance.Load && ok && t.Warned(trace.LoadWithoutTime) {
			a.say(LoadWithoutTime, "trace.load_without_time", "load", load.Imbalance, "time", time.Imbalance, "gain",
				wouldGain(t, "gain"))
			a.number("load imbalance over ranks", load.Imbalance, Fraction, Recorded)
			a.number("time imbalance over ranks", time.Imbalance, Fraction, basisOf(t))
			a.because("why.load_without_time")
			return true
		}
	}
	return false
}

// even is the answer of a trace without an uneven layer in the steps that count: others may be uneven, or
// late launches stall the ranks more than their experts do.
func (a *Answer) even(t *trace.Trace) {
	if a.loadWithoutTime(t) {
		return
	}
	if a.unevenKind(t) {
		return
	}
	a.say(Even, "trace.even", "gain", wouldGain(t, "left"))
	a.waits(t)
	if w := t.Waiting; w.Leads(t.Bound.LossNS, t.Bound.StepNS, true) {
		a.say(Even, "trace.even_late", "ns", min(w.Cause.NS, w.WaitNS)) // the last rank may make up for a part
		a.reason(checkHost(w))
	}
}

// unevenKind is the answer where steps of another kind, with a tenth of the expert time at least, are
// uneven.
func (a *Answer) unevenKind(t *trace.Trace) bool {
	own := t.Replay()
	for i := range t.Replays {
		p := &t.Replays[i]
		at := slices.IndexFunc(t.StepKinds, func(k trace.StepKind) bool { return k.Kind == p.Kind })
		if own == nil || p.Kind == own.Kind || len(p.WhatIf) == 0 || at < 0 || t.StepKinds[at].Time.Flagged == 0 {
			continue
		}
		k, w := &t.StepKinds[at], &p.WhatIf[0]
		a.say(Uneven, "trace.uneven_kind", "steps", quantity.Count(len(k.Steps), "step"), "kind", k.Name, "uneven",
			k.Time.Imbalance, "gain", w.Gain, "even", counted(t))
		a.Numbers = nil
		a.number("gain of even ranks", w.Gain, Fraction, Inferred)
		return true
	}
	return false
}

// look says where to look next: from uneven time on to the experts behind it, from these to a placement.
func (a *Answer) look(t *trace.Trace, given string) {
	both := slices.ContainsFunc(t.AllWarnings(), func(w router.Warning) bool { return w.Code == "other_arms" })
	if both && !strings.Contains(given, " ") { // compare takes several words for two sides
		a.next("both", "given", given)
	}
	few, _ := t.Waiting.FewLate()
	counts, recorded := countsOf(given)
	switch {
	case a.Verdict == SlowerGPU:
		a.next("gpu")
	case a.Verdict == AttentionUneven:
		a.next("tokens")
	case a.Verdict == LoadWithoutTime:
		a.next("backend")
	case a.Verdict == LateLaunches && few > 0:
		a.next("late", "given", given)
	case a.Verdict == LateLaunches:
		a.next("again")
	case a.Verdict == Uneven && recorded:
		a.next("place", "ranks", len(t.Ranks), "given", counts)
		a.measure(t.Treatment())
	case a.Verdict == Uneven:
		a.next("experts", "ranks", len(t.Ranks))
		a.measure(t.Treatment())
	case t.Arm == string(gain.Perfect) && !both:
		perfect := given
		if strings.Contains(given, " ") { // compare takes several words for two sides
			perfect = "PERFECT"
		}
		a.next("balanced", "perfect", perfect)
	case !both:
		a.next("loads", "load", loadToFill)
	}
}

// measure says how to measure what balance gains, by the switch that reaches the engine.
func (a *Answer) measure(treatment string) {
	if treatment == "hook" {
		a.next("measure.hook")
	} else {
		a.next("measure")
	}
}

// countsOf are the recorded counts among the arguments of trace, with their model:
// "--counts c --model m a.sqlite" → "--model m c".
func countsOf(given string) (counts string, ok bool) {
	words := strings.Fields(given)
	for i := 0; i+1 < len(words); i += 2 {
		switch words[i] {
		case "--counts":
			counts = strings.TrimSpace(counts + " " + words[i+1])
		case "--model":
			counts = strings.TrimSpace(words[i] + " " + words[i+1] + " " + counts)
		}
	}
	return counts, strings.Contains(given, "--counts ")
}

// counted names the steps that an answer is of, where others were recorded too: "3 of 13 steps (prefill,
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

// wouldGain says what even ranks would gain: "even ranks would gain about 6.0 % in prefill steps". The key
// "left" says it where experts are even: "about 0.2 % is left to gain".
func wouldGain(t *trace.Trace, key string) string {
	p := t.Replay()
	even, _ := t.WhatIf(trace.EvenRanks)
	switch gain := t.Bound.Gain; {
	case !gain.Defined():
		key += ".unknown"
	case p != nil && p.Undecided && even.InTime > 0.0005 && t.Warned(trace.LateLaunches):
		return caveat.Say(key+".late", "gain", max(gain, 0), "most", even.InTime, "steps", counted(t))
	case gain < 0.0005:
		key += ".little"
	}
	return caveat.Say(key, "gain", t.Bound.Gain, "steps", counted(t))
}

// uneven are the rows of layers whose expert time over ranks is flagged, the largest first.
func uneven(t *trace.Trace) []imbalance.Row {
	rows := slices.DeleteFunc(slices.Clone(t.Imbalance), func(r imbalance.Row) bool {
		return r.Level != router.LevelRank || r.Quantity != imbalance.Time || !r.Flagged
	})
	slices.SortStableFunc(rows, func(a, b imbalance.Row) int { return cmp.Compare(b.MaxOverMean, a.MaxOverMean) })
	return rows
}

// slow is who is slow where. Load is only spoken of where it is recorded and agrees.
func slow(t *trace.Trace, rows []imbalance.Row) string {
	first := rows[0]
	where, how := LayerName(t, first.Layer), "slowest"
	if load, ok := loadOf(t, first.Layer, router.LevelRank); ok && load.Flagged && load.Worst == first.Worst {
		how = "overloaded"
	}
	other := slices.ContainsFunc(rows, func(r imbalance.Row) bool { return r.Worst != first.Worst })
	say := func(key string) string { return caveat.Say(key, "rank", first.Worst, "where", where, "how", how) }
	switch {
	case !first.Layer.Defined():
		return say("slow.all")
	case changing(first) && len(rows) > 1:
		where = quantity.Count(len(rows), layerNoun(t))
		return say("slow.changing")
	case changing(first):
		return say("slow.changing")
	case len(rows) == 1:
		return say("slow.one")
	case !other:
		return say("slow.many")
	}
	return say("slow.layers")
}

// changing reports a layer of which no rank is the slowest in most steps.
func changing(r imbalance.Row) bool { return r.Steps > 0 && 2*r.WorstSteps <= r.Steps }

// loaded says which expert is behind the most uneven layer, by recorded counts.
func (a *Answer) loaded(t *trace.Trace, rows []imbalance.Row) {
	load, ok := loadOf(t, rows[0].Layer, router.LevelExpert)
	if !ok || !load.Flagged {
		return
	}
	null := ""
	if load.NullP95.Defined() {
		null = quantity.Digits3(load.NullP95)
	}
	a.because("why.expert", "where", LayerName(t, rows[0].Layer), "expert", load.Worst, "load",
		quantity.Digits3(load.MaxOverMean), "null", null)
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

func basisOf(t *trace.Trace) Basis {
	if imbalance.BasisOf(t.Imbalance) == imbalance.Inferred {
		return Inferred
	}
	return Measured
}

func traceBasis(t *trace.Trace, v Verdict) string {
	text := "inferred from one trace"
	switch {
	case v == NoAnswer:
		text = quantity.Duration(float64(t.Coverage.GPUNS)) + " of kernels seen"
	case v == LateLaunches:
		text = "waits measured, gain inferred"
	case basisOf(t) == Measured:
		text = "loss measured in one trace, gain inferred"
	}
	parts := []string{text}
	if steps := t.Bound.Steps; steps > 0 && t.Bound.StepNS.Defined() {
		all := len(t.Times(nil).Steps)
		text := quantity.Count(steps, "step")
		if all > steps {
			text = fmt.Sprintf("%d of %s", steps, quantity.Count(all, "step"))
		}
		parts = append(parts, text+" of "+quantity.Duration(t.Bound.StepNS))
	}
	parts = append(parts, quantity.Count(len(t.Ranks), "rank"))
	if t.Arm != "" {
		parts = append(parts, t.Arm+" arm")
	}
	if t.Steps != "" {
		parts = append(parts, "only steps "+t.Steps)
	}
	return strings.Join(parts, " · ")
}

func traceCaveats(t *trace.Trace) []Caveat {
	undecided := t.Undecided().Key()
	return caveats(byFile(t.AllWarnings()), func(w router.Warning) Severity {
		if w.Key() == undecided {
			return Doubt
		}
		return caveat.SeverityOf(w)
	})
}

// byFile names the files that warnings are of by the last part of their paths.
func byFile(warnings []router.Warning) []router.Warning {
	out := slices.Clone(warnings)
	for i := range out {
		if out[i].Subject != "" {
			out[i].Subject = filepath.Base(out[i].Subject)
		}
	}
	return out
}

// layerNoun is the thing that numbers of layers count: layers, or blocks where layers are not known.
func layerNoun(t *trace.Trace) string {
	if t != nil && t.Structure != nil && t.Structure.Layers == 0 {
		return "block"
	}
	return "layer"
}

// LayerName names a layer of a trace, or of counts, in a sentence; where none is named, all are judged
// together.
func LayerName(t *trace.Trace, l router.OptInt) string {
	if !l.Defined() {
		return "all layers"
	}
	return fmt.Sprintf("%s %d", layerNoun(t), l)
}
