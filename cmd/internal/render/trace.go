package render

import (
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/table"
)

// Trace lays a trace out for people; JSON carries it as it is. given are its captures as
// arguments of a command.
func Trace(t *trace.Trace, given string) output.Document {
	d := document(answer.OfTrace(t, given), nil, t, traceTables(t)...)
	switch d.Answer.Verdict {
	case answer.Uneven:
		d.Lead = unevenLayers(t)
	case answer.LateLaunches:
		d.Lead = d.Named("arrivals").Without("host_did")
	}
	return d
}

// unevenLayers are the layers with the largest loss of time.
func unevenLayers(t *trace.Trace) *table.Table {
	rows := slices.DeleteFunc(slices.Clone(t.Imbalance), func(r imbalance.Row) bool {
		return r.Level != router.LevelRank || r.Quantity != imbalance.Time || !r.Layer.Defined()
	})
	out := table.Of("imbalance", "", rows,
		"layer, worst_rank<worst=slowest rank, time<max_over_mean:ratio=time (max/mean), loss_ns=loss per step",
		table.Computed("loss_ns", func(r imbalance.Row) any { return r.Imbalance * r.MeanNS })).
		LeadBy("loss_ns")
	return &out
}

// statistics are the columns of trace.Stats behind the number of instances. The statistics of one
// instance are not read against totals.
const statistics = ", total_ns, mean_ns@each, median_ns@each, min_ns@each, max_ns@each, " +
	"stddev_ns@each=std dev"

// cause are the columns of an item that embeds a Cause. What a cause adds beyond the wait, the
// rank makes up for by having less of something else.
const cause = "cause, explained_ns<Explained=of it, host_did=host"

func traceTables(t *trace.Trace) []table.Table {
	experts := table.Of("experts", "Time per expert, over all steps", t.Experts,
		"layer, expert, rank, basis, slots, instances"+statistics).LeadBy("total_ns")
	if len(t.Experts) == 0 {
		experts.Title += ": none; experts have no kernels or ranges of their own; --counts allocates the time of grouped " +
			"kernels by recorded load"
	}
	return []table.Table{
		table.Of("imbalance", "Imbalance per layer: Σ max / Σ mean over the steps that count", t.Imbalance,
			"layer, level, quantity, of, basis, steps, parts, max_over_mean, imbalance:percent, floor, null_p95, flagged, "+
				"worst").LeadBy("level", "quantity", "max_over_mean"),
		table.Of("kinds", "Kinds of steps, each by itself", t.StepKinds,
			"name=kind, steps, mean<time.max_over_mean:ratio=mean "+
				"max/mean, worst<time.worst_max_over_mean:ratio=worst max/mean, worst_layer<time.worst_layer, "+
				"flagged_layers<time.flagged_layers"),
		table.Of("arrivals", "Who arrives last at the collectives: how long ranks wait for it per step, and mostly why",
			t.Waiting.Ranks, "rank, mean_wait_ns=ranks wait, "+cause).LeadBy("mean_wait_ns"),
		table.Of("phases", "GPU time per rank, layer and phase, over all steps", t.Phases,
			"rank, layer, phase, instances=kernels, total_ns, collective_ns, busy_ns").LeadBy("total_ns"),
		experts,
		table.Of("kernels", "Kernels, all ranks and steps", t.Kernels, "share:percent, instances"+statistics+
			", unknown_ns, placed=phase, phase=phase by name, library, name:short",
			table.Computed("share", func(k trace.KernelStat) any { return float64(k.TotalNS) / float64(t.Coverage.GPUNS) })),
	}
}
