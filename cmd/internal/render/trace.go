package render

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Trace lays a trace out for people; JSON carries it as it is. All its tables can be
// chosen by name. The overview keeps those that stay small whatever the number of layers,
// experts and kernels: the layers' imbalance, the time by rank and phase, and where the
// numbers come from.
func Trace(t *nsys.Trace) output.Document {
	d := output.Document{Headline: traceHeadline(t), Tables: traceTables(t), Notes: traceNotes(t), Value: t}
	names, more := []string{"imbalance", "stragglers", "waits", "time", "graphs", "coverage"}, "kinds, variants, phases"
	if len(t.Ranks) <= manyRanks {
		names = append(names, "exports", "ranks")
	} else {
		more = "exports, ranks, kinds, variants, phases"
	}
	return withOverview(d, "more tables: --table "+more+", collectives, experts, kernels, cells or alignment; everything: --format json", names...)
}

// manyRanks is above how many ranks the overview names them no more.
const manyRanks = 16

// withOverview adds an overview: the tables of these names that have rows, in this order,
// and a note on the others.
func withOverview(d output.Document, others string, names ...string) output.Document {
	kept := d
	kept.Tables, kept.Notes = nil, append(slices.Clone(d.Notes), others)
	for _, name := range names {
		if i := slices.IndexFunc(d.Tables, func(t output.Table) bool { return t.Name == name }); i >= 0 && len(d.Tables[i].Rows) > 0 {
			kept.Tables = append(kept.Tables, Narrow(d.Tables[i]))
		}
	}
	d.Overview = &kept
	return d
}

func traceTables(t *nsys.Trace) []output.Table {
	slots := computed(count("slots"), func(e nsys.ExpertStat) any {
		if !e.Known {
			return nil
		}
		return e.Slots
	})
	share := computed(percent("share"), func(k nsys.KernelStat) any { return float64(k.TotalNS) / float64(t.Coverage.GPUNS) })
	kernel := output.Column{Name: "name", Width: 70} // a row stays on one line
	file := computed(label("file"), func(e nsys.Export) any { return filepath.Base(e.Path) })
	return []output.Table{
		output.Of("imbalance", "Imbalance per layer: Σ max / Σ mean over the steps that count", t.Imbalance,
			count("layer"), label("level"), label("quantity"), label("of"), label("basis"), count("steps"), count("parts"), ratio("max/mean"), percent("imbalance"),
			ratio("floor"), ratio("null p95"), alarming(label("flagged"), "yes"), count("worst")).LeadBy("level", "quantity", "max_over_mean").Least("parts", "steps", "max_over_mean", "quantity", "of", "basis"),
		kindTable(t.StepKinds),
		output.Of("stragglers", "Compute time per step and layer, collectives excluded", t.Stragglers,
			count("layer"), count("steps"), duration("loss"), duration("mean"), duration("max"), count("slowest rank", "worst_rank"), count("in steps", "worst_steps"),
			duration("loss of GEMM", "gemm_loss_ns"), duration("of experts", "experts_loss_ns")).LeadBy("loss_ns"),
		waitTable(t.Waits),
		variantTable(t.Variants),
		output.Of("phases", "GPU time per rank, layer and phase, over all steps", t.Phases,
			append([]output.Column{count("rank"), count("layer"), label("phase"), duration("collective")}, statColumns("kernels")...)...).LeadBy("total_ns"),
		output.Of("collectives", "Collectives over all steps: wait for the last rank, and transfer", t.Collectives,
			count("rank"), count("layer"), label("phase"), count("instances"), duration("total"), duration("wait"), duration("transfer")).LeadBy("total_ns"),
		output.Of("experts", "Time per expert, over all steps", t.Experts,
			append([]output.Column{count("layer"), count("expert"), count("rank"), label("basis"), slots}, statColumns("instances")...)...).LeadBy("total_ns"),
		output.Of("kernels", "Kernels, all ranks and steps", t.Kernels,
			slices.Concat([]output.Column{share}, statColumns("instances"), []output.Column{duration("unknown"), label("phase", "placed"), label("evidence"), label("phase by name", "phase"), label("library"), kernel})...).
			Least("p99_ns", "p90_ns", "stddev_ns", "min_ns", "max_ns", "median_ns", "busy_ns", "unknown_ns", "library", "phase", "evidence", "mean_ns", "instances", "placed", "total_ns"),
		output.Of("cells", "GPU time per rank, step, layer and phase", t.Cells,
			count("rank"), count("step"), count("layer"), label("phase"), count("kernels", "instances"), duration("total"), duration("collective"), duration("busy")).LeadBy("total_ns"),
		output.Of("graphs", "CUDA graphs recorded as a whole", t.Graphs,
			append([]output.Column{count("rank"), count("graph", "graph_id")}, statColumns("launches")...)...),
		timeTable(t),
		output.Of("coverage", "Attributed share of the GPU time", []nsys.Coverage{t.Coverage},
			duration("GPU time", "gpu_ns"), percent("with launch", "launch_share"), percent("in a layer", "layer_share"), percent("in one expert", "expert_share")),
		output.Of("alignment", "Clock alignment of the ranks", t.Alignment, append([]output.Column{
			count("rank"), label("basis"), duration("offset"), count("collectives")}, within("residual", duration("median residual", "residual_ns"))...)...).LeadBy("residual_ns"),
		output.Of("exports", "Exports", t.Exports,
			file, label("nsys", "nsys_version"), label("schema", "schema_version"), count("kernels"), count("API calls", "launches"), count("ranges"), label("CUDA graphs", "graph_mode")),
		output.Of("ranks", "Ranks", t.Ranks,
			count("rank"), label("evidence"), label("file", "export"), count("process", "pid"), count("device", "device_id"), count("streams")),
	}
}

// kindTable judges each kind of steps by itself.
func kindTable(kinds []nsys.StepKind) output.Table {
	of := func(c output.Column, value func(imbalance.Summary) any) output.Column {
		return computed(c, func(k nsys.StepKind) any {
			if k.Time.Layers == 0 {
				return nil
			}
			return value(k.Time)
		})
	}
	return output.Of("kinds", "Kinds of steps, each by itself", kinds,
		label("kind", "name"), computed(label("steps"), func(k nsys.StepKind) any { return quantity.Ranges(k.Steps) }),
		of(percent("mean"), func(s imbalance.Summary) any { return s.Imbalance }),
		of(percent("worst"), func(s imbalance.Summary) any { return s.WorstMaxOverMean - 1 }),
		of(count("worst layer"), func(s imbalance.Summary) any { return s.WorstLayer }),
		of(count("flagged layers"), func(s imbalance.Summary) any { return s.Flagged }))
}

// statColumns are the columns of nsys.Stats, with the people's word for what is
// counted. The statistics of one instance are not read against totals.
func statColumns(instances string) []output.Column {
	busy := duration("busy")
	busy.Cell = func(item any) any { // whole nanoseconds
		if ns := reflect.ValueOf(item).FieldByName("BusyNS").Interface().(router.Number); ns.Defined() {
			return int64(ns)
		}
		return nil
	}
	return append([]output.Column{count(instances, "instances"), duration("total"), busy}, within("each",
		duration("mean"), duration("median"), duration("min"), duration("max"), duration("std dev", "stddev_ns"), duration("p90"), duration("p99"))...)
}

// timeTable is each rank's time per step: work by phase, waiting and transfer of the
// collectives apart from it, and time without any kernel.
func timeTable(t *nsys.Trace) output.Table {
	steps := perstep.Of(t)
	title := "GPU time per rank, collectives separate"
	if steps.Marked() {
		title = "Time per rank, mean over the steps that count, collectives separate"
	}
	out := output.Table{Name: "time", Title: title, Columns: []output.Column{count("rank")}}
	out.Leading = []string{"experts_ns"}
	byRank := steps.Phases()
	var phases []nsys.Phase
	for _, p := range nsys.Phases() {
		if slices.ContainsFunc(byRank, func(r perstep.Phases) bool { return r.Work[p] > 0 }) {
			phases = append(phases, p)
			out.Columns = append(out.Columns, duration(string(p)))
		}
	}
	out.Columns = append(out.Columns, duration("collectives", "collective_ns"), duration("wait"), duration("transfer"),
		duration("no kernel"))
	for i, r := range steps.Ranks {
		row := []any{r}
		for _, p := range phases {
			row = append(row, byRank[i].Work[p])
		}
		idle := router.Undefined()
		if at := slices.IndexFunc(t.Idle, func(o wait.Idle) bool { return o.Rank == r }); at >= 0 {
			idle = t.Idle[at].NoKernelNS
		}
		p := byRank[i]
		row = append(row, router.Number(p.Collectives), router.Number(p.Wait), router.Number(p.Transfer), idle)
		out.Rows = append(out.Rows, row)
	}
	return out
}

// traceHeadline is the answer, and under it a line for each fact beside it.
func traceHeadline(t *nsys.Trace) string {
	var of []string
	if t.Arm != "" {
		of = append(of, t.Arm+" arm")
	}
	if t.Steps != "" {
		of = append(of, "only steps "+t.Steps)
	}
	answer, known := traceAnswer(t)
	if len(of) > 0 {
		answer = strings.Join(of, ", ") + ": " + answer
	}
	if !known {
		return answer
	}
	doubts, facts := traceFacts(t)
	if len(doubts) > 0 {
		answer += "; uncertain"
		doubts[0] = "uncertain: " + doubts[0]
	}
	return strings.Join(slices.Concat([]string{answer}, doubts, stepKindFacts(t), facts, idleFact(t)), "\n")
}

// stepKindFacts is a line on the kind of steps that the answer is of, and on the others.
func stepKindFacts(t *nsys.Trace) []string {
	counted, others := t.OtherKinds()
	if counted == nil || len(others) == 0 {
		return nil
	}
	say := func(k *nsys.StepKind) string { return quantity.Numbered("step", k.Steps) + " (" + k.Name + ")" }
	const most = 3
	var rest []string
	for i := range others {
		text := say(&others[i])
		if o := others[i].Time; o.Layers > 0 {
			text += fmt.Sprintf(" mean %s, worst %s", quantity.Percent(o.Imbalance), quantity.Percent(o.WorstMaxOverMean-1))
		}
		rest = append(rest, text)
	}
	if more := len(rest) - most; more > 0 {
		rest = append(rest[:most], quantity.Count(more, "other kind"))
	}
	return []string{"of " + say(counted) + "; others: " + strings.Join(rest, "; ")}
}

// idleFact names the rank whose GPU runs no kernel for the largest part of a step, if
// that is much.
func idleFact(t *nsys.Trace) []string {
	var worst wait.Idle
	for _, r := range t.Idle {
		if r.NoKernelNS > muchIdle*r.WallNS && r.NoKernelNS > worst.NoKernelNS {
			worst = r
		}
	}
	if worst.Steps == 0 {
		return nil
	}
	return []string{fmt.Sprintf("rank %d's GPU runs no kernel for %s of %s per step", worst.Rank,
		quantity.Duration(worst.NoKernelNS), quantity.Duration(worst.WallNS))}
}

// muchIdle is the share of a step without a kernel that is worth a line.
const muchIdle = 0.25

// traceAnswer is the imbalance over ranks, or why it is not known.
func traceAnswer(t *nsys.Trace) (answer string, known bool) {
	ranks, noun := quantity.Count(len(t.Ranks), "rank"), layerNoun(t.Structure)
	if int(t.World) > len(t.Ranks) {
		ranks = fmt.Sprintf("%d of the run's %d ranks", len(t.Ranks), t.World)
	}
	switch o, ok := t.RankTime(); {
	case ok && o.WorstLayer.Defined():
		return fmt.Sprintf("%s imbalance over %s: mean %s (%s), worst %s (%s %d); %s flagged", expertTime(t), ranks, quantity.Percent(o.Imbalance),
			quantity.Count(o.Layers, noun), quantity.Percent(o.WorstMaxOverMean-1), noun, o.WorstLayer, quantity.Count(o.Flagged, noun)), true
	case ok && t.Doubt() == "":
		return fmt.Sprintf("%s imbalance over %s: %s, all layers together", expertTime(t), ranks, quantity.Percent(o.Imbalance)), true
	case len(t.Ranks) == 1:
		return "one rank; imbalance over ranks needs the traces of at least two ranks of one run", false
	case t.Doubt() != "":
		return ranks + "; imbalance is unknown\n" + t.Doubt(), false
	}
	return ranks + "; no layer has expert time on two of them, so imbalance is unknown", false
}

// traceFacts are the lines under the answer: what makes it doubtful, and what else is known.
func traceFacts(t *nsys.Trace) (doubts, facts []string) {
	if reason := t.Doubt(); reason != "" {
		doubts = append(doubts, reason)
	} else if len(t.Waits) > 0 && t.Waits[0].WaitNS > 0 {
		facts = append(facts, "ranks wait longest in "+t.Waits[0].Sentence(LayerName(t.Structure, t.Waits[0].Layer)))
	}
	if slices.ContainsFunc(t.Warnings, func(w router.Warning) bool { return w.Code == nsys.CountsContradict }) {
		doubts = append(doubts, "the recorded counts contradict the measured expert time")
	}
	if b := t.Bound; b.StepNS > 0 && b.Gain.Defined() { // results of before have none
		facts = append(facts, fmt.Sprintf("evening out ranks wins about %s: the slowest ranks' %s is %s above the mean in a profiled step of %s; inferred from one arm, balanced routing may win more or less",
			quantity.Change(b.Gain), b.Of.ExpertTime(), quantity.Duration(b.LossNS), quantity.Duration(b.StepNS)))
	}
	return doubts, facts
}

// expertTime names what the imbalance over ranks is of.
func expertTime(t *nsys.Trace) string {
	if slices.ContainsFunc(t.Imbalance, func(r imbalance.Row) bool { return r.Of == imbalance.OfGEMM }) {
		return "expert-GEMM-time"
	}
	return "expert-time"
}

// layerNoun is what the number of a layer counts: layers that ranges name or that are
// inferred, or blocks where both are unknown.
func layerNoun(s *nsys.Structure) string {
	switch {
	case s == nil:
		return "layer"
	case s.Layers > 0:
		return "inferred layer"
	}
	return "block"
}

func traceNotes(t *nsys.Trace) []string {
	ranks := map[string][]int{} // by subject of warnings
	for _, e := range t.Exports {
		name := filepath.Base(e.Path)
		ranks[name] = append(ranks[name], e.Ranks...)
	}
	notes := warningNotes(t.AllWarnings(), ranks)
	if t.Arm != "" {
		notes = append(notes, fmt.Sprintf("evidence of the arm (%s): %s", t.Arm, t.ArmEvidence))
	}
	return append(notes, overSteps(t.Bound.Of.ExpertTime(), t.OverSteps)...)
}

// overSteps is a line on the median and the worst step of a trace, about the times of which
// the worst is longer by more than a twentieth.
func overSteps(experts string, o imbalance.OverSteps) []string {
	var parts []string
	for _, v := range []struct {
		name string
		imbalance.Spread
	}{{"profiled step time", o.Step}, {experts + " of the slowest rank", o.Experts}, {"straggler loss", o.Loss}} {
		if v.Steps < 2 || !(v.P99NS > 1.05*v.P50NS) {
			continue
		}
		worst := fmt.Sprintf("worst of %d steps", v.Steps)
		if v.Steps >= 100 { // before, p99 is the largest
			worst = "p99"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s %s)", v.name, quantity.Duration(v.P50NS), worst, quantity.Duration(v.P99NS)))
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{"p50 over steps: " + strings.Join(parts, "; ")}
}

// manyInNote is from how many on a note names ranks in place of files, in fewer ranges
// than that.
const manyInNote = 7

// warningGroup are warnings of texts that differ in numbers only.
type warningGroup struct {
	texts, subjects []string // each once
}

// warningNotes are the warnings as footnotes, each text once, in the order of their first
// appearance, with how many subjects have it, or with their ranks where they are many and in
// few ranges. Texts of one code that differ in numbers only are one, with the first text's
// numbers.
func warningNotes(warnings []router.Warning, ranks map[string][]int) (notes []string) {
	var groups []*warningGroup
	byShape := map[string]*warningGroup{}
	for _, w := range warnings {
		shape := w.Code + ": " + quantities.ReplaceAllString(w.Text, "#")
		if byShape[shape] == nil {
			byShape[shape] = &warningGroup{}
			groups = append(groups, byShape[shape])
		}
		g := byShape[shape]
		if !slices.Contains(g.texts, w.Text) {
			g.texts = append(g.texts, w.Text)
		}
		if !slices.Contains(g.subjects, w.Subject) {
			g.subjects = append(g.subjects, w.Subject)
		}
	}
	for _, g := range groups {
		notes = append(notes, g.note(ranks))
	}
	return notes
}

// quantities are numbers, with their unit where it follows their size.
var quantities = regexp.MustCompile(`[0-9][0-9.,]*(?: (?:[nµm]?s|[KMG]iB)\b)?`)

func (g warningGroup) note(ranks map[string][]int) string {
	subject := few(g.subjects)
	var known []int
	for _, s := range g.subjects {
		known = append(known, ranks[s]...)
	}
	slices.Sort(known)
	if list := quantity.Ranges(slices.Compact(known)); len(known) >= manyInNote && strings.Count(list, ",") < manyInNote {
		subject = "ranks " + list
	}
	text := strings.TrimPrefix(subject+": "+g.texts[0], ": ")
	if n := len(g.texts); n > 1 {
		text += fmt.Sprintf(" (the first of %d with different numbers)", n)
	}
	return text
}

// LayerName names a layer in a sentence. Without ranges that name layers, all of them
// are judged together.
func LayerName(inferred *nsys.Structure, layer router.Whole) string {
	if !layer.Defined() {
		return "all layers together"
	}
	return fmt.Sprintf("%s %d", layerNoun(inferred), layer)
}
