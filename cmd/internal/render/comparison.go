package render

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Comparison lays a comparison out for people; JSON carries it as
// it is.
func Comparison(r diff.Comparison) output.Document {
	d := output.Document{Headline: comparisonHeadline(r), Tables: comparisonTables(r), Value: r,
		Notes: slices.Concat(overSteps("normal: ", r.Ceiling.Of.ExpertTime(), r.Normal.OverSteps), overSteps("perfect: ", r.Ceiling.Of.ExpertTime(), r.Perfect.OverSteps), predictionNotes(r.Prediction), warningNotes(r.Warnings, nil))}
	if len(r.Builds) == 2 {
		return ofBuilds(d, r.Builds)
	}
	return d
}

// ofBuilds calls the sides by the names of two builds, without the tables about balance.
func ofBuilds(d output.Document, builds []string) output.Document {
	rename := func(s string) string {
		return armWord.ReplaceAllStringFunc(s, func(w string) string {
			if w == string(gain.Normal) {
				return builds[0]
			}
			return builds[1]
		})
	}
	d.Tables = slices.DeleteFunc(d.Tables, func(t output.Table) bool { return t.Name == "bound" || t.Name == "balance" || t.Name == "hardware" })
	d.Headline = rename(d.Headline)
	for i, n := range d.Notes {
		d.Notes[i] = rename(n)
	}
	for i := range d.Tables {
		t := &d.Tables[i]
		t.Title = rename(t.Title)
		for c := range t.Columns {
			t.Columns[c].Name = rename(t.Columns[c].Name)
		}
		for _, row := range t.Rows {
			for c, cell := range row {
				if arm := fmt.Sprint(cell); arm == string(gain.Normal) || arm == string(gain.Perfect) {
					row[c] = rename(arm)
				}
			}
		}
	}
	return d
}

var armWord = regexp.MustCompile(`\b(normal|perfect)\b`)

// ComparisonOverview is what people see who asked for no table: where the
// difference is, and what explains it.
func ComparisonOverview(r diff.Comparison) output.Document {
	d := Comparison(r)
	if !r.Comparable {
		d.Tables = nil
		d.Notes = append(d.Notes, "phases, layers, ranks and kernels of both sides: --table phases and others, or --format json")
		return d
	}
	var kinds []string
	if len(r.Kinds) > 0 {
		kinds = []string{"kinds"}
	}
	if len(r.Builds) == 2 {
		d.Tables = overview(d.Tables, append(kinds, "phases", "stragglers", "kernels")...)
		d.Notes = append(d.Notes, "more tables: --table layers, ranks, waits, steps or active; everything: --format json")
		return d
	}
	d.Tables = overview(d.Tables, append(kinds, "phases", "stragglers", "waits", "hardware", "bound")...)
	d.Notes = append(d.Notes, "more tables: --table layers, ranks, balance, steps, active or kernels; everything: --format json")
	return d
}

// comparisonHeadline leads with the compute of the slowest rank, which is the cost of
// imbalance. The GPU time of a step comes last, because a part of it is waiting.
func comparisonHeadline(r diff.Comparison) string {
	if !r.Comparable {
		return "not comparable: " + strings.Join(r.Reasons, "; ")
	}
	if !r.Step.Ratio.Defined() {
		return "no step with time on both sides"
	}
	var parts []string
	per := "per step"
	if len(r.Kinds) > 0 {
		per += " (" + r.Kinds[0].Steps + ")"
	}
	if e := r.Ceiling.SlowestExperts; e.NormalNS > 0 {
		parts = append(parts, r.Ceiling.Of.ExpertTime()+" of the slowest rank "+fromTo(e.NormalNS, e.PerfectNS))
	}
	if layer, share, ok := worstLoss(r); ok {
		loss := r.Ceiling.StragglerLoss
		parts = append(parts, fmt.Sprintf("straggler loss %s, %s of the reduction is in %s", fromTo(loss.NormalNS, loss.PerfectNS), quantity.Percent(share), layer))
	}
	if normal, perfect := r.Waiting(); normal > 0 {
		parts = append(parts, "waiting at the collectives behind the experts "+fromTo(normal, perfect))
	}
	step := "GPU time " + fromTo(r.Step.NormalNS, r.Step.PerfectNS)
	if change := collectiveChange(r); change != 0 {
		step += fmt.Sprintf(", of which collectives (mostly waiting) %s", quantity.Duration(change))
	}
	if r.Ceiling.StepGain.Defined() {
		parts = append(parts, step)
	}
	return predictedGain(r.Prediction) + per + ", normal to perfect: " + strings.Join(parts, "; ")
}

// predictedGain begins the headline; empty where no gain is predicted.
func predictedGain(p diff.Prediction) string {
	if !p.Gain.Defined() {
		return ""
	}
	text := fmt.Sprintf("predicted gain %s (step time: %s", quantity.Change(p.Gain), p.StepBasis)
	switch {
	case p.LateHosts && p.Gain > 0:
		text = fmt.Sprintf("predicted gain at most %s (step time: %s; ranks wait mostly for late hosts, which balance does not change", quantity.Change(p.Gain), p.StepBasis)
	case p.Low.Defined():
		text += fmt.Sprintf("; %s interval over steps %s to %s", quantity.Confidence(p.Confidence), quantity.Change(p.Low), quantity.Change(p.High))
	}
	text += ")"
	if m := p.Measured; m != nil {
		text += ", campaign measured " + quantity.Change(m.Estimate)
		if m.Low.Defined() {
			text += fmt.Sprintf(" (%s interval %s to %s)", quantity.Confidence(m.Confidence), quantity.Change(m.Low), quantity.Change(m.High))
		}
	}
	return text + "; "
}

// predictionNotes say what the prediction is made of.
func predictionNotes(p diff.Prediction) (notes []string) {
	if !p.SavedNS.Defined() {
		return nil
	}
	text := fmt.Sprintf("predicted gain = compute saved per step / step time of the perfect arm: %s of straggler loss, %s of mean expert time, %s of other compute",
		quantity.Duration(p.LossNS), quantity.Duration(p.ExpertsNS), quantity.Duration(p.OtherNS))
	switch {
	case p.StepBasis == "":
		return []string{text + "; step time unknown, so no gain is predicted: record two whole steps, or pass --campaign"}
	case p.StepBasis == diff.Profiled && p.Measured != nil:
		text += fmt.Sprintf("; step time %s, profiled: the campaign's metric is no step time; for tokens per second add --step-tokens", quantity.Duration(p.StepNS))
	default:
		text += fmt.Sprintf("; step time %s, %s", quantity.Duration(p.StepNS), p.StepBasis)
	}
	if p.ProfilerOverhead.Defined() {
		text += fmt.Sprintf(" (profiler overhead %s)", quantity.Change(p.ProfilerOverhead))
	}
	return []string{text}
}

// fromTo shows a change of a time.
func fromTo(normal, perfect router.Number) string {
	return fmt.Sprintf("%s to %s (%s)", quantity.Duration(normal), quantity.Duration(perfect), quantity.Change(perfect/normal-1))
}

// collectiveChange is by how much the time in collective kernels changed, mean
// over ranks, in nanoseconds per step.
func collectiveChange(r diff.Comparison) (ns router.Number) {
	for _, p := range r.Phases {
		if p.Collective && p.Change.DifferenceNS.Defined() {
			ns += p.Change.DifferenceNS
		}
	}
	return ns
}

// worstLoss is the layer whose straggler loss was reduced most, and its share of the
// reduction over all layers.
func worstLoss(r diff.Comparison) (layer string, share float64, ok bool) {
	var fall, most float64
	for _, s := range r.Stragglers {
		d := -float64(s.Change.DifferenceNS)
		if d > 0 {
			fall += d
		}
		if d > most {
			most, layer = d, lossLayer(s.Layer, cmp.Or(r.Normal.Structure, r.Perfect.Structure))
		}
	}
	return layer, most / fall, most > 0
}

func lossLayer(layer router.Whole, inferred *nsys.Structure) string {
	if !layer.Defined() {
		return "no layer"
	}
	return fmt.Sprintf("%s %d", layerNoun(inferred), layer)
}

// changeTable is a table of times in both arms, whose items embed a diff.Change.
func changeTable[T any](name, title string, items []T, before []output.Column, after ...output.Column) output.Table {
	of := computed(percent("of normal", "difference_of_normal"), func(c interface{ OfNormal() router.Number }) any { return c.OfNormal() })
	return output.Of(name, title, items, slices.Concat(before, []output.Column{
		duration("normal"), duration("perfect"), duration("difference"), duration("±", "difference_sd_ns"), of,
	}, after)...)
}

var slowestColumns = []output.Column{
	duration("slowest normal", "normal_slowest_ns"), duration("slowest perfect", "perfect_slowest_ns"),
	real("kernels normal", "normal_instances"), real("kernels perfect", "perfect_instances"),
}

// timeKind names the kind of time of a field "collective".
var timeKind = output.Column{Name: "kind", Cell: func(item any) any {
	if reflect.ValueOf(item).FieldByName("Collective").Bool() {
		return "collective"
	}
	return "compute"
}}

func changedKinds(r diff.Comparison) output.Table {
	t := output.Table{Name: "kinds", Title: "Kinds of steps, each compared with its like; the other tables are of the first", Columns: []output.Column{
		label("steps"), count("steps normal"), count("steps perfect"), duration("experts slowest normal", "normal_experts_slowest_ns"), duration("experts slowest perfect", "perfect_experts_slowest_ns"),
		duration("loss normal", "normal_loss_ns"), duration("loss perfect", "perfect_loss_ns"), percent("predicted gain", "predicted_gain"),
	}}
	for _, k := range r.Kinds {
		e, l := k.SlowestExperts, k.StragglerLoss
		t.Rows = append(t.Rows, []any{k.Steps, len(k.NormalSteps), len(k.PerfectSteps), e.NormalNS, e.PerfectNS, l.NormalNS, l.PerfectNS, k.Gain})
	}
	return t
}

func changedPhases(r diff.Comparison) output.Table {
	t := changeTable("phases", "Time per step by phase, mean over ranks (±: standard deviation of one step)", r.Phases, []output.Column{label("phase"), timeKind}, slowestColumns...)
	s := r.Step
	t.Rows = append(t.Rows, []any{"step", "busy", s.NormalNS, s.PerfectNS, s.DifferenceNS, s.DifferenceSDNS, s.OfNormal(), nil, nil, nil, nil})
	return t
}

func changedLosses(r diff.Comparison) output.Table {
	type loss struct {
		Layer router.Whole `json:"layer"`
		diff.Change
	}
	var losses []loss
	for _, s := range r.Stragglers {
		losses = append(losses, loss{s.Layer, s.Change})
	}
	return changeTable("stragglers", "Straggler loss per step: slowest rank − mean, compute of all phases", losses, []output.Column{count("layer")}).LeadBy("difference_ns")
}

func ceilingTable(r diff.Comparison) output.Table {
	k := r.Ceiling
	time := k.Of.ExpertTime()
	return output.Table{Name: "bound", Title: "Upper bound of the gain from balance: 1/(1 − f + f·b) − 1", Columns: []output.Column{label("quantity"), percent("value")}, Rows: [][]any{
		{"f, share of " + time + " in the normal step", k.ExpertShare},
		{"b, balancedness of " + time + ", normal", k.Balancedness},
		{"b, balancedness of " + time + ", perfect", k.PerfectBalancedness},
		{"upper bound of the gain", k.GainBound},
		{"w, mean " + time + ", perfect/normal", k.ExpertWork},
		{"upper bound including w, 1/(1 − f + f·b·w) − 1", k.GainBoundWithWork},
		{"gain in GPU time per step of these traces, waiting included", k.StepGain},
	}}
}

func comparisonTables(r diff.Comparison) []output.Table {
	variants := computed(count("variants"), func(k diff.KernelFamily) any { return len(k.Names) })
	tables := []output.Table{
		changedPhases(r),
		changeTable("layers", "Time per step by layer and phase, mean over ranks", r.LayerTimes, []output.Column{count("layer"), label("phase"), timeKind}, slowestColumns...).LeadBy("difference_ns"),
		changedLosses(r),
		output.Of("waits", waitTitle, r.Waits, append([]output.Column{label("arm")}, waitColumns(func(w diff.ArmWait) wait.Wait { return w.Wait })...)...).LeadBy("mean_wait_ns"),
		changeTable("ranks", "Time per step by rank and phase", r.RankTimes, []output.Column{count("rank"), label("phase"), timeKind}).LeadBy("difference_ns"),
		output.Of("hardware", "Expert compute per step and rank; hardware and load relative to the mean rank", r.RankSpeeds,
			count("rank"), duration("normal"), duration("perfect"), ratio("hardware"), ratio("load")).LeadBy("load"),
		ceilingTable(r),
		output.Of("balance", "max/mean in both arms, mean over steps", r.Balance,
			count("layer"), label("level"), label("quantity"), ratio("normal", "normal_max_over_mean"), ratio("perfect", "perfect_max_over_mean")),
		output.Of("steps", "Steps", r.Steps,
			label("arm"), count("step"), label("compared"), duration("GPU time, mean rank", "mean_ns"), duration("experts, slowest rank", "experts_slowest_ns"), duration("wall time", "wall_ns")),
		output.Of("active", "Active experts", r.Active, count("layer"), count("normal"), count("perfect")),
		output.Of("kernels", "Kernels launched by one arm only", r.Kernels,
			append([]output.Column{label("arm"), label("phase"), label("family"), label("family in other arm"), variants, count("instances"), duration("total")},
				within("each", duration("mean"), duration("mean in other arm", "other_arm_mean_ns"))...)...).LeadBy("total_ns"),
	}
	if len(r.Kinds) > 0 {
		tables = append([]output.Table{changedKinds(r)}, tables...)
	}
	return tables
}
