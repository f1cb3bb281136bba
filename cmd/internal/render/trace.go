package render

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Trace lays a trace out for people; JSON carries it as it is. All its
// tables can be chosen by name; TraceOverview keeps those that stay small whatever
// the number of layers, experts and kernels.
func Trace(t *nsys.Trace) output.Document {
	return output.Document{
		Headline: traceHeadline(t),
		Tables: []output.Table{
			imbalanceTable(t), stragglerTable(t), phaseTable(t), collectiveTable(t), expertTable(t), kernelTable(t),
			cellTable(t), graphTable(t), timeTable(t), coverageTable(t), alignmentTable(t), exportTable(t), rankTable(t),
		},
		Notes: traceNotes(t),
		Value: t,
	}
}

// TraceOverview is what people see who asked for no table: the layers' imbalance,
// the time by rank and phase, and where the numbers come from.
func TraceOverview(t *nsys.Trace) output.Document {
	d := Trace(t)
	d.Tables = nil
	for _, table := range []output.Table{imbalanceTable(t), stragglerTable(t), timeTable(t), graphTable(t), coverageTable(t), exportTable(t), rankTable(t)} {
		if len(table.Rows) > 0 {
			d.Tables = append(d.Tables, table)
		}
	}
	d.Notes = append(d.Notes, "more tables: --table phases, collectives, experts, kernels, cells or alignment; everything: --format json")
	return d
}

func traceHeadline(t *nsys.Trace) string {
	arm := t.Arm + " arm: "
	switch t.Arm {
	case "":
		arm = "unknown arm: "
	case nsys.MixedArms:
		arm = "mixed arms: "
	}
	ranks := quantity.Count(len(t.Ranks), "rank")
	o, ok := t.RankTime()
	switch {
	case ok && !o.WorstLayer.Defined():
		return fmt.Sprintf("%sexpert-time imbalance over %s: %s, all layers together", arm, ranks, quantity.Percent(o.Imbalance))
	case ok:
		return fmt.Sprintf("%sexpert-time imbalance over %s: mean %s (%s), worst %s (layer %d); %s flagged", arm, ranks, quantity.Percent(o.Imbalance),
			quantity.Count(o.Layers, "layer"), quantity.Percent(o.WorstMaxOverMean-1), o.WorstLayer, quantity.Count(o.Flagged, "layer"))
	case len(t.Ranks) == 1:
		return arm + "one rank; imbalance over ranks needs at least two"
	}
	return arm + ranks + "; no layer has expert time on two of them, so imbalance is unknown"
}

func traceNotes(t *nsys.Trace) []string {
	all := slices.Clone(t.Warnings)
	for _, e := range t.Exports {
		all = append(all, e.Warnings...)
	}
	notes := warningNotes(all)
	if t.Arm != "" {
		notes = append(notes, fmt.Sprintf("evidence of the arm (%s): %s", t.Arm, t.ArmEvidence))
	}
	return notes
}

// warningNotes are the warnings as footnotes, each text once, with how many
// subjects have it.
func warningNotes(warnings []router.Warning) []string {
	var notes []string
	subjects := map[string][]string{}
	for _, w := range warnings {
		if len(subjects[w.Text]) == 0 {
			notes = append(notes, w.Text)
		}
		subjects[w.Text] = append(subjects[w.Text], w.Subject)
	}
	for i, text := range notes {
		if s := subjects[text]; s[0] != "" {
			notes[i] = fmt.Sprintf("%s: %s", s[0], text)
			if len(s) > 1 {
				notes[i] = fmt.Sprintf("%s and %d more: %s", s[0], len(s)-1, text)
			}
		}
	}
	return notes
}

func imbalanceTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "imbalance", Title: "Imbalance per layer, mean over steps", Columns: []output.Column{
		{Name: "layer", Kind: output.Count}, {Name: "level"}, {Name: "quantity"}, {Name: "steps", Kind: output.Count}, {Name: "parts", Kind: output.Count},
		{Name: "max/mean", Key: "max_over_mean", Kind: output.Ratio}, {Name: "imbalance", Kind: output.Percent},
		{Name: "floor", Kind: output.Ratio}, {Name: "null p95", Key: "null_p95", Kind: output.Ratio}, {Name: "flagged"}, {Name: "worst", Kind: output.Count},
	}, Rows: output.Rows(t.Imbalance, func(s imbalance.Row) []any {
		return []any{s.Layer, s.Level, s.Quantity, s.Steps, s.Parts, s.MaxOverMean, s.Imbalance, s.Floor, s.NullP95, s.Flagged, s.Worst}
	})}
}

func stragglerTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "stragglers", Title: "Compute time per step and layer, collectives excluded", Columns: []output.Column{
		{Name: "layer", Kind: output.Count}, {Name: "steps", Kind: output.Count}, {Name: "loss", Key: "loss_ns", Kind: output.Duration},
		{Name: "mean", Key: "mean_ns", Kind: output.Duration}, {Name: "max", Key: "max_ns", Kind: output.Duration},
		{Name: "slowest rank", Key: "worst_rank", Kind: output.Count}, {Name: "in steps", Key: "worst_steps", Kind: output.Count},
	}, Rows: output.Rows(t.Stragglers, func(s imbalance.Straggler) []any {
		return []any{s.Layer, s.Steps, s.LossNS, s.MeanNS, s.MaxNS, s.WorstRank, s.WorstSteps}
	})}
}

func phaseTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "phases", Title: "GPU time per rank, layer and phase, over all steps", Columns: append([]output.Column{
		{Name: "rank", Kind: output.Count}, {Name: "layer", Kind: output.Count}, {Name: "phase"}, {Name: "collective", Key: "collective_ns", Kind: output.Duration},
	}, statColumns("kernels")...), Rows: output.Rows(t.Phases, func(s nsys.PhaseStat) []any {
		return append([]any{s.Rank, s.Layer, string(s.Phase), s.CollectiveNS}, statCells(s.Stats)...)
	})}
}

// statColumns are the columns of statCells, with the people's word for what is
// counted.
func statColumns(instances string) []output.Column {
	return []output.Column{
		{Name: instances, Key: "instances", Kind: output.Count}, {Name: "total", Key: "total_ns", Kind: output.Duration}, {Name: "busy", Key: "busy_ns", Kind: output.Duration},
		each("mean", "mean_ns"), each("median", "median_ns"), each("min", "min_ns"), each("max", "max_ns"), each("std dev", "stddev_ns"),
		each("p90", "p90_ns"), each("p99", "p99_ns"),
	}
}

// each is a statistic of single instances, which is not read against totals.
func each(name, key string) output.Column {
	return output.Column{Name: name, Key: key, Kind: output.Duration, Group: "each"}
}

func statCells(s nsys.Stats) []any {
	var busy any
	if s.BusyNS.Defined() {
		busy = int64(s.BusyNS)
	}
	return []any{s.Instances, s.TotalNS, busy, s.MeanNS, s.MedianNS, s.MinNS, s.MaxNS, s.StdDevNS, s.P90NS, s.P99NS}
}

// timeTable sums each rank's time over its layers: work by phase, and waiting
// and transfer of the collectives apart from it.
func timeTable(t *nsys.Trace) output.Table {
	out := output.Table{Name: "time", Title: "GPU time per rank over all steps, collectives separate", Columns: []output.Column{{Name: "rank", Kind: output.Count}}}
	work := map[int]map[nsys.Phase]int64{}
	collective, total := map[int]int64{}, map[nsys.Phase]int64{}
	for _, s := range t.Phases {
		if work[s.Rank] == nil {
			work[s.Rank] = map[nsys.Phase]int64{}
		}
		work[s.Rank][s.Phase] += s.TotalNS - s.CollectiveNS
		total[s.Phase] += s.TotalNS - s.CollectiveNS
		collective[s.Rank] += s.CollectiveNS
	}
	var phases []nsys.Phase
	for _, p := range nsys.Phases() {
		if total[p] > 0 {
			phases = append(phases, p)
			out.Columns = append(out.Columns, output.Column{Name: string(p), Key: strings.ReplaceAll(string(p), " ", "_") + "_ns", Kind: output.Duration})
		}
	}
	out.Columns = append(out.Columns, output.Column{Name: "collectives", Key: "collective_ns", Kind: output.Duration},
		output.Column{Name: "wait", Key: "wait_ns", Kind: output.Duration}, output.Column{Name: "transfer", Key: "transfer_ns", Kind: output.Duration})
	for _, r := range t.Ranks {
		row := []any{r.Rank}
		for _, p := range phases {
			row = append(row, work[r.Rank][p])
		}
		var wait, transfer router.Number
		for _, c := range t.Collectives {
			if c.Rank == r.Rank {
				wait += c.WaitNS
				transfer += c.TransferNS
			}
		}
		out.Rows = append(out.Rows, append(row, collective[r.Rank], wait, transfer))
	}
	return out
}

func collectiveTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "collectives", Title: "Collectives over all steps: wait for the slowest rank, and transfer", Columns: []output.Column{
		{Name: "rank", Kind: output.Count}, {Name: "layer", Kind: output.Count}, {Name: "phase"}, {Name: "instances", Kind: output.Count},
		{Name: "total", Key: "total_ns", Kind: output.Duration}, {Name: "wait", Key: "wait_ns", Kind: output.Duration}, {Name: "transfer", Key: "transfer_ns", Kind: output.Duration},
	}, Rows: output.Rows(t.Collectives, func(s nsys.CollectiveStat) []any {
		return []any{s.Rank, s.Layer, string(s.Phase), s.Instances, s.TotalNS, s.WaitNS, s.TransferNS}
	})}
}

func expertTable(t *nsys.Trace) output.Table {
	out := output.Table{Name: "experts", Title: "Time per expert, over all steps", Columns: append([]output.Column{
		{Name: "layer", Kind: output.Count}, {Name: "expert", Kind: output.Count}, {Name: "rank", Kind: output.Count}, {Name: "basis"}, {Name: "slots", Kind: output.Count},
	}, statColumns("instances")...)}
	for _, s := range t.Experts {
		var slots any
		if s.Known {
			slots = s.Slots
		}
		out.Rows = append(out.Rows, append([]any{s.Layer, s.Expert, s.Rank, string(s.Basis), slots}, statCells(s.Stats)...))
	}
	return out
}

// kernelNameWidth keeps a row of the kernels' table on one line.
const kernelNameWidth = 70

func kernelTable(t *nsys.Trace) output.Table {
	out := output.Table{Name: "kernels", Title: "Kernels, all ranks and steps", Columns: slices.Concat(
		[]output.Column{{Name: "share", Kind: output.Percent}}, statColumns("instances"),
		[]output.Column{{Name: "unknown", Key: "unknown_ns", Kind: output.Duration}, {Name: "phase by name", Key: "phase"}, {Name: "library"}, {Name: "name", Width: kernelNameWidth}},
	)}
	for _, s := range t.Kernels {
		var share any
		if t.Coverage.GPUNS > 0 {
			share = float64(s.TotalNS) / float64(t.Coverage.GPUNS)
		}
		out.Rows = append(out.Rows, slices.Concat([]any{share}, statCells(s.Stats), []any{s.UnknownNS, string(s.Phase), s.Library, s.Name}))
	}
	return out
}

func cellTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "cells", Title: "GPU time per rank, step, layer and phase", Columns: []output.Column{
		{Name: "rank", Kind: output.Count}, {Name: "step", Kind: output.Count}, {Name: "layer", Kind: output.Count}, {Name: "phase"}, {Name: "kernels", Key: "instances", Kind: output.Count},
		{Name: "total", Key: "total_ns", Kind: output.Duration}, {Name: "collective", Key: "collective_ns", Kind: output.Duration}, {Name: "busy", Key: "busy_ns", Kind: output.Duration},
	}, Rows: output.Rows(t.Cells, func(c nsys.Cell) []any {
		return []any{c.Rank, c.Step, c.Layer, string(c.Phase), c.Instances, c.TotalNS, c.CollectiveNS, c.BusyNS}
	})}
}

func graphTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "graphs", Title: "CUDA graphs recorded as a whole", Columns: append([]output.Column{
		{Name: "rank", Kind: output.Count}, {Name: "graph", Key: "graph_id", Kind: output.Count},
	}, statColumns("launches")...), Rows: output.Rows(t.Graphs, func(g nsys.GraphStat) []any {
		return append([]any{g.Rank, g.Graph}, statCells(g.Stats)...)
	})}
}

func coverageTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "coverage", Title: "Attributed share of the GPU time", Columns: []output.Column{
		{Name: "GPU time", Key: "gpu_ns", Kind: output.Duration}, {Name: "with launch", Key: "launch_share", Kind: output.Percent},
		{Name: "in a layer", Key: "layer_share", Kind: output.Percent}, {Name: "in one expert", Key: "expert_share", Kind: output.Percent},
	}, Rows: [][]any{{t.Coverage.GPUNS, t.Coverage.LaunchShare, t.Coverage.LayerShare, t.Coverage.ExpertShare}}}
}

func alignmentTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "alignment", Title: "Clock alignment of the ranks", Columns: []output.Column{
		{Name: "rank", Kind: output.Count}, {Name: "basis"}, {Name: "offset", Key: "offset_ns", Kind: output.Duration},
		{Name: "collectives", Kind: output.Count}, {Name: "median residual", Key: "residual_ns", Kind: output.Duration, Group: "residual"},
	}, Rows: output.Rows(t.Alignment, func(a nsys.Alignment) []any {
		return []any{a.Rank, a.Basis, a.OffsetNS, a.Collectives, a.ResidualNS}
	})}
}

func exportTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "exports", Title: "Exports", Columns: []output.Column{
		{Name: "file"}, {Name: "nsys", Key: "nsys_version"}, {Name: "schema", Key: "schema_version"}, {Name: "kernels", Kind: output.Count},
		{Name: "API calls", Key: "launches", Kind: output.Count}, {Name: "ranges", Kind: output.Count}, {Name: "CUDA graphs", Key: "graph_mode"},
	}, Rows: output.Rows(t.Exports, func(e nsys.Export) []any {
		return []any{filepath.Base(e.Path), e.NsysVersion, e.SchemaVersion, e.Kernels, e.Launches, e.Ranges, e.GraphMode}
	})}
}

func rankTable(t *nsys.Trace) output.Table {
	return output.Table{Name: "ranks", Title: "Ranks", Columns: []output.Column{
		{Name: "rank", Kind: output.Count}, {Name: "evidence"}, {Name: "file", Key: "export"}, {Name: "process", Key: "pid", Kind: output.Count}, {Name: "device", Key: "device_id", Kind: output.Count},
		{Name: "streams", Kind: output.Count},
	}, Rows: output.Rows(t.Ranks, func(r nsys.Rank) []any {
		return []any{r.Rank, r.Evidence, r.Export, r.PID, r.DeviceID, r.Streams}
	})}
}

// LayerName names a layer in a sentence. Without ranges that name layers, all of them
// are judged together.
func LayerName(layer router.Whole) string {
	if !layer.Defined() {
		return "all layers together"
	}
	return fmt.Sprintf("layer %d", layer)
}
