package render

import (
	"fmt"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// Trace lays a trace out for people; JSON carries it as it is. given are its captures as
// arguments of a command.
func Trace(t *trace.Trace, given string) output.Document {
	a := answer.OfTrace(t, given)
	var notes []string
	if t.Arm != "" {
		notes = append(notes, fmt.Sprintf("evidence of the arm (%s): %s", t.Arm, t.ArmEvidence))
	}
	d := document(a, notes, struct {
		*trace.Trace
		Answer answer.Answer `json:"answer"`
	}{t, a}, traceTables(t)...)
	switch a.Verdict {
	case answer.Uneven:
		d.Lead = unevenLayers(t)
	case answer.LateLaunches:
		d.Lead = d.Named("arrivals").Without("host_did")
	}
	return d
}

// unevenLayers are the layers with the largest loss, by time and, where it is recorded, by load.
func unevenLayers(t *trace.Trace) *table.Table {
	out := table.New("imbalance", "", "layer:count, worst_rank:count=slowest rank, time:ratio=time (max/mean), "+
		"load:ratio=load (max/mean), loss_ns=loss per step").LeadBy("loss_ns")
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
		at := router.Undefined()
		if l, ok := load[r.Layer]; ok {
			at = l
		}
		out.Rows = append(out.Rows, []any{r.Layer, r.Worst, r.MaxOverMean, at, r.Imbalance * r.MeanNS})
	}
	return &out
}

// statistics are the columns of trace.Stats behind the number of instances. The statistics of one
// instance are not read against totals.
const statistics = ", total_ns, busy_ns, mean_ns@each, median_ns@each, min_ns@each, max_ns@each, " +
	"stddev_ns@each=std dev, p90_ns@each, p99_ns@each"

// cause are the columns of an item that embeds a Cause. What a cause adds beyond the wait, the
// rank makes up for by having less of something else.
const cause = "cause, explained_ns=of it, host_did=host"

func traceTables(t *trace.Trace) []table.Table {
	explained := table.Computed("explained_ns",
		func(c interface{ Explained() router.Number }) any { return c.Explained() })
	return []table.Table{
		table.Of("imbalance", "Imbalance per layer: Σ max / Σ mean over the steps that count", t.Imbalance,
			"layer, level, quantity, of, basis, steps, parts, max_over_mean, imbalance:percent, floor, null_p95, flagged, "+
				"worst").LeadBy("level", "quantity", "max_over_mean"),
		kindTable(t.StepKinds),
		table.Of("arrivals", "Who arrives last at the collectives: how long ranks wait for it per step, and mostly why",
			t.Waiting.Ranks, "rank, last_steps=last in steps, mean_wait_ns=ranks wait, "+cause, explained).
			LeadBy("mean_wait_ns"),
		table.Of("late", "Steps in which ranks wait far longer than in most, for whom, and mostly why", t.Waiting.Late,
			"step, rank, layer, mean_wait_ns=ranks wait, usual_wait_ns=usually, "+cause, explained).
			LeadBy("mean_wait_ns"),
		table.Of("phases", "GPU time per rank, layer and phase, over all steps", t.Phases,
			"rank, layer, phase, instances=kernels, total_ns, collective_ns, busy_ns").LeadBy("total_ns"),
		empty(table.Of("experts", "Time per expert, over all steps", t.Experts,
			"layer, expert, rank, basis, slots, instances"+statistics).LeadBy("total_ns"),
			"experts have no kernels or ranges of their own; --counts allocates the time of grouped kernels by recorded load"),
		table.Of("kernels", "Kernels, all ranks and steps", t.Kernels, "share:percent, instances"+statistics+
			", unknown_ns, placed=phase, evidence, phase=phase by name, library, name:short",
			table.Computed("share", func(k trace.KernelStat) any { return float64(k.TotalNS) / float64(t.Coverage.GPUNS) })),
	}
}

// empty says why a table has no rows, where it has none.
func empty(t table.Table, why string) table.Table {
	if len(t.Rows) == 0 {
		t.Title += ": none; " + why
	}
	return t
}

// kindTable judges each kind of steps by itself.
func kindTable(kinds []trace.StepKind) table.Table {
	of := func(key string, value func(imbalance.Summary) any) table.Cell {
		return table.Computed(key, func(k trace.StepKind) any {
			if k.Time.Layers == 0 {
				return nil
			}
			return value(k.Time)
		})
	}
	return table.Of("kinds", "Kinds of steps, each by itself", kinds,
		"name=kind, steps, mean:percent, worst:percent, worst_layer:count, flagged_layers:count",
		table.Computed("steps", func(k trace.StepKind) any { return quantity.Ranges(k.Steps) }),
		of("mean", func(s imbalance.Summary) any { return s.Imbalance }),
		of("worst", func(s imbalance.Summary) any { return s.WorstMaxOverMean - 1 }),
		of("worst_layer", func(s imbalance.Summary) any { return s.WorstLayer }),
		of("flagged_layers", func(s imbalance.Summary) any { return s.Flagged }))
}
