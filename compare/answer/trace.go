package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfTrace answers what uneven experts cost in the run of a trace. given are its captures
// as arguments of a command.
func OfTrace(t *nsys.Trace, given string) Answer {
	a := Answer{Numbers: []Number{}, Reasons: []string{}, Next: []Step{}, Caveats: traceCaveats(t)}
	switch {
	case hiddenNS(t) > t.Coverage.GPUNS:
		a.hidden(t)
	case len(t.Ranks) < 2:
		a.Verdict, a.Line = NoAnswer, "No answer: one rank was given; imbalance needs at least two ranks of one run."
		a.Next = append(a.Next, recordAll)
	case t.Undecided().Code != "":
		a.Verdict, a.Line = NoAnswer, "No answer: "+caveat.Brief(t.Undecided())+"."
		a.Reasons = append(a.Reasons, sentence(caveat.Text(t.Undecided())))
		if t.Undecided().Code == "missing_ranks" {
			a.Next = append(a.Next, recordAll)
		}
		a.load(t)
	default:
		a.judged(t, given)
	}
	a.Basis = traceBasis(t, a.Verdict)
	return a
}

// load says what recorded counts do, where fused kernels hide how long ranks work.
func (a *Answer) load(t *nsys.Trace) {
	if t.Undecided().Code != nsys.FusedExperts {
		return
	}
	for _, o := range t.Overall {
		if o.Level == router.LevelRank && o.Quantity == imbalance.Load {
			a.Numbers = append(a.Numbers, NumberOf("load imbalance over ranks", o.Imbalance, Fraction, Recorded),
				NumberOf(fmt.Sprintf("worst imbalance (%s)", LayerName(t, o.WorstLayer)), o.WorstMaxOverMean-1, Fraction,
					Recorded))
		}
	}
}

// hiddenNS is the time of CUDA graphs that were recorded whole.
func hiddenNS(t *nsys.Trace) (ns int64) {
	for _, g := range t.Graphs {
		ns += g.TotalNS
	}
	return ns
}

func (a *Answer) hidden(t *nsys.Trace) {
	launches := int64(0)
	for _, g := range t.Graphs {
		launches += g.Instances
	}
	a.Verdict = NoAnswer
	a.Line = fmt.Sprintf("No answer: %s hide the kernels inside %s of GPU time.",
		quantity.Count(launches, "CUDA graph launch"), quantity.Duration(float64(hiddenNS(t))))
	a.Next = append(a.Next, Step{"Record the kernels inside CUDA graphs.", "moebalance profile -- YOUR_COMMAND"})
}

// judged is the answer of a trace whose expert time over ranks is known.
func (a *Answer) judged(t *nsys.Trace, given string) {
	rows, gain, w := uneven(t), t.Bound.Gain, t.Waiting
	evenly, loss := NumberOf("gain of even ranks", gain, Fraction, Inferred), NumberOf("loss per step", t.Bound.LossNS,
		NS, basisOf(t))
	a.Numbers = []Number{evenly, loss}
	switch {
	case w.Leads(t.Bound.LossNS, t.Bound.StepNS, len(rows) > 0):
		a.Verdict = LateLaunches
		late := "Late launches " + stalled(w)
		a.Line = clause(late+"; ", wouldGain("balance", gain), late+".")
		a.Numbers = []Number{NumberOf("waiting per step", w.WaitNS, NS, Measured), evenly, loss}
		a.Reasons = append(a.Reasons, waitReasons(t)...)
		if len(rows) > 0 {
			a.Reasons = append(a.Reasons, slowestWords(t, rows))
		}
		a.Reasons = append(a.Reasons, checkHost(w))
	case len(rows) > 0:
		a.Verdict = Uneven
		where := capital(overloaded(t, rows))
		a.Line = clause(where+"; ", wouldGain("perfectly even ranks", gain),
			clause(where+"; ", wouldGain("even ranks", gain), where+"."))
		a.Reasons = append(append(a.Reasons, loadReasons(t, rows)...), waitReasons(t)...)
	default:
		a.Verdict = Even
		a.Line = fmt.Sprintf("Expert time is even; %s.", wouldGain("perfectly even ranks", gain))
		if r, ok := noisy(t); ok {
			a.Numbers[0].Label += " at most" // for equal ones would gain nothing
			a.Numbers = append(a.Numbers, NumberOf("imbalance of equal ranks by noise", r.Floor-1, Fraction, Inferred))
			a.Line = "Expert time is as even as its noise allows."
			a.Reasons = append(a.Reasons, fmt.Sprintf(
				"%s is %s uneven; %d equal ranks whose times vary as much from step to step are %s.",
				capital(LayerName(t, r.Layer)), quantity.Percent(r.Imbalance), r.Parts, quantity.Percent(r.Floor-1)))
		}
		a.Reasons = append(a.Reasons, waitReasons(t)...)
		if w.Leads(t.Bound.LossNS, t.Bound.StepNS, true) { // more than what noise hides
			a.Line = fmt.Sprintf("Expert time is even; late launches stall the ranks %s per step.",
				quantity.Duration(min(w.Cause.NS, w.WaitNS))) // the last rank may make up for a part
			a.Reasons = append(a.Reasons, checkHost(w))
		}
	}
	if t.Contradicted() {
		a.Reasons = append([]string{"The recorded counts contradict the measured expert time: they may be of another run."},
			a.Reasons...)
	}
	a.Reasons = append(a.Reasons, otherKinds(t)...)
	if extra := len(a.Reasons) - 3; extra > 0 { // what kinds there are says what the answer is of
		a.Reasons = slices.Delete(a.Reasons, 1, 1+extra)
	}
	if o, ok := t.RankTime(); ok {
		a.Numbers = append(a.Numbers, NumberOf(fmt.Sprintf("worst imbalance (%s)", LayerName(t, o.WorstLayer)),
			o.WorstMaxOverMean-1, Fraction, basisOf(t)))
	}
	a.Numbers = slices.DeleteFunc(a.Numbers, func(n Number) bool { return !n.Value.Defined() })
	a.look(t, given)
}

// look says where to look next.
func (a *Answer) look(t *nsys.Trace, given string) {
	both := slices.ContainsFunc(t.AllWarnings(), func(w router.Warning) bool { return w.Code == "other_arms" })
	if both && !strings.Contains(given, " ") { // compare takes several words for two sides
		a.Next = append(a.Next, Step{"Both arms are in this capture: compare them.", "moebalance compare " + given})
	}
	if a.Verdict == LateLaunches {
		a.Next = append(a.Next, Step{"See who arrives last, and when.", "moebalance trace --table " + lateTable(t.Waiting) +
			" " + given})
	} else if a.Verdict == Uneven {
		a.Next = append(a.Next, Step{"See which layers and ranks.", "moebalance trace --table imbalance " + given})
	}
}

// kindWord is the word of a kind of steps: prefill or decode, or counted where its name does
// not begin so.
func kindWord(k *nsys.StepKind) string {
	word, _, _ := strings.Cut(k.Name, ",")
	if word == "prefill" || word == "decode" {
		return word
	}
	return "counted"
}

// otherKinds is a reason on the steps that the answer is of, and how uneven others are; empty where all
// are of one kind.
func otherKinds(t *nsys.Trace) []string {
	kind, others := t.OtherKinds()
	others = slices.DeleteFunc(slices.Clone(others), func(k nsys.StepKind) bool { return k.Time.Layers == 0 })
	if kind == nil || len(others) == 0 {
		return nil
	}
	uneven := func(a, b nsys.StepKind) int { return cmp.Compare(a.Time.Imbalance, b.Time.Imbalance) }
	least, most := slices.MinFunc(others, uneven), slices.MaxFunc(others, uneven)
	those := quantity.Count(len(others), "other kind") + ": " + quantity.Percent(least.Time.Imbalance)
	if len(others) > 1 {
		those = strings.TrimSuffix(those, " %") + " to " + quantity.Percent(most.Time.Imbalance)
	}
	be := "are"
	if len(kind.Steps) == 1 {
		be = "is"
	}
	return []string{fmt.Sprintf("%s (%s) %s %s uneven; %s (--table kinds).",
		capital(quantity.Numbered("step", kind.Steps)), kind.Name, be, quantity.Percent(kind.Time.Imbalance), those)}
}

// wouldGain says what would gain how much: "perfectly even ranks would gain about 6.0 %".
func wouldGain(what string, gain router.Number) string {
	if !gain.Defined() {
		return "what that costs is unknown"
	}
	if gain < 0.0005 {
		return what + " would gain less than 0.1 %"
	}
	return fmt.Sprintf("%s would gain about %s", what, quantity.Percent(gain))
}

// uneven are the rows of layers whose expert time over ranks is flagged, the largest first.
func uneven(t *nsys.Trace) []imbalance.Row {
	rows := slices.DeleteFunc(slices.Clone(t.Imbalance), func(r imbalance.Row) bool {
		return r.Level != router.LevelRank || r.Quantity != imbalance.Time || !r.Flagged
	})
	slices.SortStableFunc(rows, func(a, b imbalance.Row) int { return cmp.Compare(b.MaxOverMean, a.MaxOverMean) })
	return rows
}

// noisy is the layer with the most uneven time over ranks, where that is noise.
func noisy(t *nsys.Trace) (worst imbalance.Row, ok bool) {
	for _, r := range t.Imbalance {
		if r.Level == router.LevelRank && r.Quantity == imbalance.Time && r.Imbalance > worst.Imbalance {
			worst = r
		}
	}
	return worst, worst.Noise()
}

// overloaded is who is slow where. Load is only spoken of where it is recorded and agrees.
func overloaded(t *nsys.Trace, rows []imbalance.Row) string {
	first := rows[0]
	if !first.Layer.Defined() {
		return fmt.Sprintf("rank %d is slowest over all layers", first.Worst)
	}
	word := "is slowest"
	if load, ok := loadOf(t, first.Layer, router.LevelRank); ok && load.Flagged && load.Worst == first.Worst {
		word = "is overloaded"
	}
	n, same, layer := len(rows), true, LayerName(t, first.Layer)
	for _, r := range rows {
		same = same && r.Worst == first.Worst
	}
	switch {
	case changing(first) && n == 1:
		return "the slowest rank changes in " + layer
	case changing(first):
		return "the slowest rank changes in " + quantity.Count(n, layerNoun(t))
	case n == 1:
		return fmt.Sprintf("rank %d %s in %s", first.Worst, word, layer)
	case same:
		return fmt.Sprintf("rank %d %s, most in %s", first.Worst, word, layer)
	}
	return "expert time is uneven, most in " + layer
}

// changing reports a layer of which no rank is the slowest in most steps.
func changing(r imbalance.Row) bool { return r.Steps > 0 && 2*r.WorstSteps <= r.Steps }

// slowestWords says whether one rank is behind most of the uneven layers.
func slowestWords(t *nsys.Trace, rows []imbalance.Row) string {
	most, layers := mostOften(rows, func(r imbalance.Row) router.OptInt { return r.Worst })
	changed := slices.DeleteFunc(slices.Clone(rows), func(r imbalance.Row) bool { return !changing(r) })
	switch {
	case 2*len(changed) > len(rows):
		return fmt.Sprintf("%s uneven, but the slow rank changes from step to step.", are(len(rows), layerNoun(t)))
	case len(rows) == 1:
		return fmt.Sprintf("%s is uneven; rank %d is slowest there.", capital(LayerName(t, rows[0].Layer)), most)
	case 2*layers > len(rows):
		of := fmt.Sprintf("%d of them", layers)
		if layers == len(rows) {
			of = "each"
		}
		return fmt.Sprintf("%s uneven; rank %d is slowest in %s.", are(len(rows), layerNoun(t)), most, of)
	}
	return fmt.Sprintf("%s uneven, but no rank is slowest in more than %d: the slow rank changes from %[3]s to %[3]s.",
		are(len(rows), layerNoun(t)), layers, layerNoun(t))
}

// loadReasons say which expert is behind the most uneven layer, by recorded counts, or without
// them which rank is behind most layers.
func loadReasons(t *nsys.Trace, rows []imbalance.Row) []string {
	load, ok := loadOf(t, rows[0].Layer, router.LevelExpert)
	if !ok || !load.Flagged || t.Contradicted() {
		if len(rows) > 1 {
			return []string{slowestWords(t, rows)}
		}
		return nil
	}
	text := fmt.Sprintf("In layer %d expert %d has %s × the mean load", rows[0].Layer, load.Worst,
		quantity.Digits3(load.MaxOverMean))
	if load.NullP95.Defined() {
		text += fmt.Sprintf(" (95th percentile under random routing: %s)", quantity.Digits3(load.NullP95))
	}
	return []string{text + "."}
}

func loadOf(t *nsys.Trace, layer router.OptInt, level string) (imbalance.Row, bool) {
	i := slices.IndexFunc(t.Imbalance, func(r imbalance.Row) bool {
		return r.Layer == layer && r.Level == level && r.Quantity == imbalance.Load
	})
	if i < 0 {
		return imbalance.Row{}, false
	}
	return t.Imbalance[i], true
}

// mostOften is the value that most items have, the least of several, and how many have it.
func mostOften[T any, K cmp.Ordered](items []T, of func(T) K) (most K, times int) {
	n := map[K]int{}
	for _, item := range items {
		n[of(item)]++
	}
	for value, k := range n {
		if k > times || k == times && value < most {
			most, times = value, k
		}
	}
	return most, times
}

func basisOf(t *nsys.Trace) Basis {
	if imbalance.BasisOf(t.Imbalance) == imbalance.Inferred {
		return Inferred
	}
	return Measured
}

func traceBasis(t *nsys.Trace, v Verdict) string {
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
	if steps := t.OverSteps.Experts.Steps; steps > 0 && t.Bound.StepNS.Defined() {
		counted := quantity.Count(steps, "step")
		if kind, others := t.OtherKinds(); kind != nil && len(others) > 0 {
			counted = quantity.Count(steps, kindWord(kind)+" step")
		}
		parts = append(parts, counted+" of "+quantity.Duration(t.Bound.StepNS))
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

func traceCaveats(t *nsys.Trace) []Caveat {
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

func are(n int, noun string) string {
	if n == 1 {
		return quantity.Count(n, noun) + " is"
	}
	return quantity.Count(n, noun) + " are"
}

// layerNoun is what the numbers of layers count: blocks, where layers are not known.
func layerNoun(t *nsys.Trace) string {
	if t != nil && t.Structure != nil && t.Structure.Layers == 0 {
		return "block"
	}
	return "layer"
}

// LayerName names a layer of a trace, or of counts, in a sentence; where none is named, all are judged
// together.
func LayerName(t *nsys.Trace, l router.OptInt) string {
	if !l.Defined() {
		return "all layers"
	}
	return fmt.Sprintf("%s %d", layerNoun(t), l)
}

// sentence begins with a capital and ends with a stop.
func sentence(text string) string { return strings.TrimSuffix(capital(text), ".") + "." }

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
