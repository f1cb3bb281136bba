package render

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// Trace lays a trace out for people; JSON carries it as it is. given are its captures as
// arguments of a command.
func Trace(t *nsys.Trace, given string) output.Document {
	a := answer.OfTrace(t, given)
	d := document(a, traceNotes(t), tracedJSON{t, a}, traceTables(t)...)
	switch a.Verdict {
	case answer.Uneven:
		d.Lead = unevenLayers(t)
	case answer.LateLaunches:
		arrivals := arrivalTable(t.Waiting)
		d.Lead = arrivals.Only("rank", "last_steps", "mean_wait_ns", "cause", "explained_ns")
	}
	return d
}

// unevenLayers are the layers with the largest loss, by time and, where it is recorded, by load.
func unevenLayers(t *nsys.Trace) *table.Table {
	out := &table.Table{Columns: []table.Column{count("layer"), count("slowest rank", "worst_rank"),
		ratio("time (max/mean)", "time"), ratio("load (max/mean)", "load"), duration("loss per step", "loss_ns")},
		Leading: []string{"loss_ns"}}
	load := map[router.OptInt]router.Number{}
	for _, r := range t.Imbalance {
		if r.Level == router.LevelRank && r.Quantity == imbalance.Load {
			load[r.Layer] = r.MaxOverMean
		}
	}
	for _, r := range t.Imbalance {
		if r.Level != router.LevelRank || r.Quantity != imbalance.Time || !r.Layer.Defined() {
			continue
		}
		loss, at := router.Undefined(), router.Undefined()
		for _, s := range t.Stragglers {
			if s.Layer != r.Layer {
				continue
			}
			if loss = s.ExpertsLossNS; r.Of == imbalance.OfGEMM {
				loss = s.GEMMLossNS
			}
		}
		if l, ok := load[r.Layer]; ok {
			at = l
		}
		out.Rows = append(out.Rows, []any{r.Layer, r.Worst, r.MaxOverMean, at, loss})
	}
	if len(load) == 0 {
		return out.Without("load")
	}
	return out
}

// tracedJSON is the JSON of a trace.
type tracedJSON struct {
	*nsys.Trace
	Answer answer.Answer `json:"answer"`
}

func traceTables(t *nsys.Trace) []table.Table {
	file := computed(label("file"), func(e nsys.Export) any { return filepath.Base(e.Path) })
	return []table.Table{
		table.Of("imbalance", "Imbalance per layer: Σ max / Σ mean over the steps that count", t.Imbalance,
			count("layer"), label("level"), label("quantity"), label("of"), label("basis"), count("steps"),
			count("parts"), ratio("max/mean"), percent("imbalance"),
			ratio("floor"), ratio("null p95"), alarming(label("flagged"), "yes"), count("worst")).LeadBy("level",
			"quantity", "max_over_mean").Least("parts", "steps", "max_over_mean", "quantity", "of", "basis"),
		kindTable(t.StepKinds),
		table.Of("stragglers", "Compute time per step and layer, collectives excluded", t.Stragglers,
			count("layer"), count("steps"), duration("loss"), duration("mean"), duration("max"),
			count("slowest rank", "worst_rank"), count("in steps", "worst_steps"),
			duration("loss of GEMM", "gemm_loss_ns"), duration("of experts", "experts_loss_ns")).LeadBy("loss_ns"),
		arrivalTable(t.Waiting),
		lateTable(t.Waiting),
		table.Of("phases", "GPU time per rank, layer and phase, over all steps", t.Phases,
			count("rank"), count("layer"), label("phase"), count("kernels", "instances"), duration("total"),
			duration("collective"), duration("busy")).LeadBy("total_ns"),
		table.Of("collectives", "Collectives over all steps: wait for the last rank, and transfer", t.Collectives,
			count("rank"), count("layer"), label("phase"), count("instances"), duration("total"), duration("wait"),
			duration("transfer")).LeadBy("total_ns"),
		expertTable(t.Experts),
		kernelTable(t),
		table.Of("cells", "GPU time per rank, step, layer and phase", t.Cells,
			count("rank"), count("step"), count("layer"), label("phase"), count("kernels", "instances"),
			duration("total"), duration("collective"), duration("busy")).LeadBy("total_ns"),
		table.Of("graphs", "CUDA graphs recorded as a whole", t.Graphs,
			append([]table.Column{count("rank"), count("graph", "graph_id")}, statColumns("launches")...)...),
		timeTable(t),
		table.Of("coverage", "Attributed share of the GPU time", []nsys.Coverage{t.Coverage},
			duration("GPU time", "gpu_ns"), percent("with launch", "launch_share"),
			percent("in a layer", "layer_share"), percent("in one expert", "expert_share")),
		table.Of("alignment", "Clock alignment of the ranks", t.Alignment, append([]table.Column{
			count("rank"), label("basis"), duration("offset"), real("drift (ppm)", "drift_ppm"), count("collectives")},
			within("residual", duration("median residual", "residual_ns"))...)...).LeadBy("residual_ns"),
		table.Of("exports", "Exports", t.Exports,
			file, label("nsys", "nsys_version"), label("schema", "schema_version"), count("kernels"),
			count("API calls", "launches"), count("ranges"), label("CUDA graphs", "graph_mode")),
		table.Of("ranks", "Ranks", t.Ranks,
			count("rank"), label("evidence"), label("file", "export"), count("process", "pid"),
			count("device", "device_id"), count("streams")),
	}
}

func expertTable(experts []nsys.ExpertStat) table.Table {
	return table.Of("experts", "Time per expert, over all steps", experts,
		append([]table.Column{count("layer"), count("expert"), count("rank"), label("basis"), count("slots")},
			statColumns("instances")...)...).LeadBy("total_ns")
}

func kernelTable(t *nsys.Trace) table.Table {
	share := computed(percent("share"),
		func(k nsys.KernelStat) any { return float64(k.TotalNS) / float64(t.Coverage.GPUNS) })
	name := table.Column{Name: "name", Width: 70} // a row stays on one line
	return table.Of("kernels", "Kernels, all ranks and steps", t.Kernels,
		slices.Concat([]table.Column{share}, statColumns("instances"),
			[]table.Column{duration("unknown"), label("phase", "placed"), label("evidence"),
				label("phase by name", "phase"), label("library"), name})...).
		Least("p99_ns", "p90_ns", "stddev_ns", "min_ns", "max_ns", "median_ns", "busy_ns", "unknown_ns", "library",
			"phase", "evidence", "mean_ns", "instances", "placed", "total_ns")
}

// kindTable judges each kind of steps by itself.
func kindTable(kinds []nsys.StepKind) table.Table {
	of := func(c table.Column, value func(imbalance.Summary) any) table.Column {
		return computed(c, func(k nsys.StepKind) any {
			if k.Time.Layers == 0 {
				return nil
			}
			return value(k.Time)
		})
	}
	return table.Of("kinds", "Kinds of steps, each by itself", kinds,
		label("kind", "name"), computed(label("steps"), func(k nsys.StepKind) any { return quantity.Ranges(k.Steps) }),
		of(percent("mean"), func(s imbalance.Summary) any { return s.Imbalance }),
		of(percent("worst"), func(s imbalance.Summary) any { return s.WorstMaxOverMean - 1 }),
		of(count("worst layer"), func(s imbalance.Summary) any { return s.WorstLayer }),
		of(count("flagged layers"), func(s imbalance.Summary) any { return s.Flagged }))
}

// statColumns are the columns of nsys.Stats, with the people's word for what is
// counted. The statistics of one instance are not read against totals.
func statColumns(instances string) []table.Column {
	busy := duration("busy")
	busy.Cell = func(item any) any { // whole nanoseconds
		if ns := reflect.ValueOf(item).FieldByName("BusyNS").Interface().(router.Number); ns.Defined() {
			return int64(ns)
		}
		return nil
	}
	return append([]table.Column{count(instances, "instances"), duration("total"), busy}, within("each",
		duration("mean"), duration("median"), duration("min"), duration("max"), duration("std dev", "stddev_ns"),
		duration("p90"), duration("p99"))...)
}

// timeTable is each rank's time per step: work by phase, waiting and transfer of the
// collectives apart from it, and time without any kernel.
func timeTable(t *nsys.Trace) table.Table {
	steps := t.PerStep()
	title := "GPU time per rank, collectives separate"
	if steps.Marked() {
		title = "Time per rank, mean over the steps that count, collectives separate"
	}
	out := table.Table{Name: "time", Title: title, Columns: []table.Column{count("rank")}}
	out.Leading = []string{"experts_ns"}
	byRank := steps.Phases()
	var phases []nsys.Phase
	for _, p := range nsys.Phases() {
		if slices.ContainsFunc(byRank, func(r nsys.RankPhases) bool { return r.Work[p] > 0 }) {
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

// traceNotes are what a trace says beside its warnings.
func traceNotes(t *nsys.Trace) []string {
	if t.Arm == "" {
		return nil
	}
	return []string{fmt.Sprintf("evidence of the arm (%s): %s", t.Arm, t.ArmEvidence)}
}
