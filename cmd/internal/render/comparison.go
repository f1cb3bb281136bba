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
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Comparison lays a comparison out for people; JSON carries it as it is. The overview is
// where the difference is, and what explains it.
func Comparison(r diff.Comparison) output.Document {
	d := output.Document{Headline: comparisonHeadline(r), Tables: comparisonTables(r), Value: r,
		Notes: append(predictionNotes(r.Prediction), warningNotes(r.Warnings, nil)...)}
	switch {
	case len(r.Builds) == 2:
		d = ofBuilds(d, r.Builds)
		if r.Comparable {
			return withOverview(d, "more tables: --table layers, ranks, waits, steps or active; everything: --format json", "kinds", "phases", "stragglers", "kernels")
		}
	case r.Comparable:
		return withOverview(d, "more tables: --table layers, ranks, balance, steps, active or kernels; everything: --format json", "kinds", "gain", "phases", "stragglers", "waits", "hardware")
	}
	return withOverview(d, "phases, layers, ranks and kernels of both sides: --table phases and others, or --format json", "work")
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
	d.Tables = slices.DeleteFunc(d.Tables, func(t output.Table) bool {
		return t.Name == "gain" || t.Name == "balance" || t.Name == "hardware"
	})
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

// comparisonHeadline is the answer, and under it a line for each fact it rests on. The GPU
// time of a step comes last, because a part of it is waiting.
func comparisonHeadline(r diff.Comparison) string {
	if !r.Comparable {
		return "not comparable: " + strings.Join(r.Reasons, "\n")
	}
	if !r.Step.Ratio.Defined() {
		return "no step with time on both sides"
	}
	per, arms := "per step", ", normal (learned router) to perfect (balanced router): "
	if len(r.Kinds) > 0 {
		per += " (" + r.Kinds[0].Steps + ")"
	}
	if len(r.Builds) == 2 {
		arms = ", normal to perfect: "
	}
	var facts []string
	if e := r.Ceiling.SlowestExperts; e.NormalNS > 0 {
		facts = append(facts, r.Ceiling.Of.ExpertTime()+" of the slowest rank "+fromTo(e.NormalNS, e.PerfectNS))
	}
	if layer, share, ok := worstLoss(r); ok {
		loss := r.Ceiling.StragglerLoss
		facts = append(facts, fmt.Sprintf("straggler loss %s; %s of the reduction is in %s", fromTo(loss.NormalNS, loss.PerfectNS), quantity.Percent(share), layer))
	}
	if normal, perfect := r.Waiting(); normal > 0 {
		facts = append(facts, "waiting at the collectives behind the experts "+fromTo(normal, perfect))
	}
	if r.Ceiling.StepGain.Defined() {
		step := "GPU time " + fromTo(r.Step.NormalNS, r.Step.PerfectNS)
		if change := collectiveChange(r); change != 0 {
			step += fmt.Sprintf(", of which collectives (mostly waiting) %s", quantity.Duration(change))
		}
		facts = append(facts, step)
	}
	return strings.Join(append(gainLines(r), per+arms+strings.Join(facts, "\n")), "\n")
}

// gainLines are the gain, measured or else predicted, with what a placement can reach of
// it, and then what it is made of; none where no gain is predicted or measured.
func gainLines(r diff.Comparison) (lines []string) {
	p, placement := r.Prediction, r.Split.PlacementSentence()
	if placement != "" {
		placement = "; " + placement
	}
	if layer, share, ok := worstLoss(r); ok && share > 0.5 && r.Split.Placement.GainBound > 0 {
		placement += ", mostly in " + layer
	}
	if m := p.Measured; m != nil {
		text := "measured gain " + quantity.Change(m.Estimate)
		if m.Low.Defined() {
			text += " (" + interval(m.Confidence, "interval", m.Low, m.High) + ")"
		}
		if r.Split.Basis == diff.FromCampaign {
			text, placement = text+placement, ""
		}
		lines = append(lines, text)
	}
	if p.Gain.Defined() {
		text, basis := "predicted gain "+quantity.Change(p.Gain), "step time: "+string(p.StepBasis)
		if p.LateHosts && p.Gain > 0 {
			text = "predicted gain at most " + quantity.Change(p.Gain)
			basis += "; ranks wait mostly for late hosts"
		} else if p.Low.Defined() {
			basis = interval(p.Confidence, "interval over steps", p.Low, p.High) + "; " + basis
		}
		lines = append(lines, fmt.Sprintf("%s (%s)%s", text+r.ForKinds(), basis, placement))
	}
	if text := r.Split.Sentence(); text != "" {
		lines = append(lines, text)
	}
	if len(lines) == 0 && r.Ceiling.GainBound.Defined() && len(r.Builds) == 0 {
		lines = append(lines, r.Ceiling.Sentence())
	}
	if text := heldOut(r.Split.Placement); text != "" {
		lines = append(lines, text)
	}
	return lines
}

// heldOut says what a placement recovers on counts that it was not learned from; empty
// without counts.
func heldOut(p diff.Placement) string {
	if p.Held == "" || !p.Recovered.Defined() { // then it says why
		return p.Held
	}
	return fmt.Sprintf("%s: recovers %s of the uneven load, %s of throughput if time follows load ('moebalance place --trace' fits it)", p.Held, quantity.Percent(p.Recovered), quantity.Change(p.RecoveredGain))
}

func interval[F ~float64](confidence F, noun string, low, high router.Number) string {
	return fmt.Sprintf("%s %s %s to %s", quantity.Confidence(confidence), noun, quantity.Change(low), quantity.Change(high))
}

// predictionNotes say which step time the gains are of, and how to get a better one.
func predictionNotes(p diff.Prediction) []string {
	switch {
	case p.SavedNS.Defined() && p.StepBasis == "":
		return []string{"step time unknown, so no gain is predicted: record two whole steps, or pass --campaign"}
	case p.ProfilerOverhead.Defined():
		return []string{"the profiler makes a step of the perfect arm longer by " + quantity.Percent(p.ProfilerOverhead)}
	}
	return nil
}

// splitTable is what the gain is made of.
func splitTable(s diff.Split) output.Table {
	return output.Of("gain", fmt.Sprintf("Parts of the gain, predicted from the traces: time saved per step / step of the perfect arm (%s, %s)", quantity.Duration(s.PerfectNS), s.Basis), s.Parts,
		label("part"), duration("saved"), percent("gain"), percent("low"), percent("high"))
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
// reduction over all layers. False where no layer is known, or none lost less.
func worstLoss(r diff.Comparison) (layer string, share router.Number, ok bool) {
	var fall, most router.Number
	for _, s := range r.Stragglers {
		d := -s.Change.DifferenceNS
		if d > 0 {
			fall += d
		}
		if d > most && s.Layer.Defined() {
			most, layer = d, LayerName(cmp.Or(r.Normal.Structure, r.Perfect.Structure), s.Layer)
		}
	}
	return layer, most / fall, most > 0
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

// workTable is what the sides did, as far as balance cannot change it.
func workTable(r diff.Comparison) output.Table {
	t := output.Table{Name: "work", Title: "What balance cannot change", Columns: []output.Column{
		label("quantity"), real("normal"), real("perfect"), percent("differs"), percent("allowed")}}
	for _, w := range r.Work {
		name := w.Quantity
		if w.Unit != "" {
			name += " (" + w.Unit + ")"
		}
		t.Rows = append(t.Rows, []any{name, w.Normal, w.Perfect, w.Differs, w.Allowed})
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

func comparisonTables(r diff.Comparison) []output.Table {
	variants := computed(count("variants"), func(k diff.KernelFamily) any { return len(k.Names) })
	tables := []output.Table{
		changedPhases(r),
		changeTable("layers", "Time per step by layer and phase, mean over ranks", r.LayerTimes, []output.Column{count("layer"), label("phase"), timeKind}, slowestColumns...).LeadBy("difference_ns"),
		changedLosses(r),
		output.Of("waits", waitTitle, r.Waits, append([]output.Column{label("arm")}, waitColumns()...)...).LeadBy("mean_wait_ns").Least("last_steps", "most_expert_rank", "last_rank"),
		changeTable("ranks", "Time per step by rank and phase", r.RankTimes, []output.Column{count("rank"), label("phase"), timeKind}).LeadBy("difference_ns"),
		output.Of("hardware", "Expert compute per step and rank; hardware and load relative to the mean rank", r.RankSpeeds,
			count("rank"), duration("normal"), duration("perfect"), ratio("hardware"), ratio("load")).LeadBy("load"),
		splitTable(r.Split),
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
	if !r.Comparable { // it leads
		return append([]output.Table{workTable(r)}, tables...)
	}
	return append(tables, workTable(r))
}
