package render

import (
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/table"
)

const waitTitle = "Waiting at the collective behind the experts: last − mean arrival per step, and its parts: last − " +
	"mean rank (±: 95 % over steps)"

// waitTable is who waits for whom, and why.
func waitTable(waits []wait.Wait) table.Table {
	return table.Of("waits", waitTitle, waits, waitColumns()...).LeadBy("mean_wait_ns").Least("last_steps",
		"most_expert_rank", "last_rank")
}

// arrivalTable is for whom the ranks wait.
func arrivalTable(w wait.Waiting) table.Table {
	return table.Of("arrivals", "Who arrives last at the collectives: how long ranks wait for it per step, and mostly why",
		w.Ranks, append([]table.Column{count("rank"), count("last in steps", "last_steps"),
			duration("ranks wait", "mean_wait_ns")}, causeColumns()...)...).LeadBy("mean_wait_ns")
}

// lateTable is in which steps ranks wait far longer than in most.
func lateTable(w wait.Waiting) table.Table {
	return table.Of("late", "Steps in which ranks wait far longer than in most, for whom, and mostly why", w.Late,
		append([]table.Column{count("step"), count("rank"), count("layer"), label("phase"),
			duration("ranks wait", "mean_wait_ns"), duration("usually", "usual_wait_ns")}, causeColumns()...)...).
		LeadBy("mean_wait_ns")
}

// causeColumns are those of an item that embeds a Cause. What a cause adds beyond the wait, the
// rank makes up for by having less of something else.
func causeColumns() []table.Column {
	type caused interface{ Explained() router.Number }
	return []table.Column{label("cause"),
		computed(duration("of it", "explained_ns"), func(c caused) any { return c.Explained() }),
		label("host", "host_did")}
}

// Narrow is a table for the page: that of waits without the intervals of their parts.
func Narrow(t table.Table) table.Table {
	var parts []string
	for _, c := range t.Columns {
		if strings.HasSuffix(c.Key, "_half_width_ns") && c.Key != "mean_wait_half_width_ns" {
			parts = append(parts, c.Key)
		}
	}
	return *t.Without(parts...)
}

// waitColumns are those of an item that is or embeds a Wait.
func waitColumns() []table.Column {
	type waiting interface{ All() []wait.Part }
	columns := []table.Column{count("layer"), count("steps"), count("last rank"), count("in steps", "last_steps"),
		count("most experts", "most_expert_rank")}
	for i, p := range (wait.Wait{}).All() {
		columns = append(columns, computed(duration(p.Name, p.Key), func(w waiting) any { return w.All()[i].NS }),
			computed(duration("±", strings.TrimSuffix(p.Key, "_ns")+"_half_width_ns"),
				func(w waiting) any { in := w.All()[i].Interval; return (in.High - in.Low) / 2 }))
	}
	return append(columns, duration("Python GC", "host_gc_ns"), duration("GIL", "host_gil_ns"))
}

// variantTable is which rank ran which variant of a kernel. People see where the names
// of a family differ, which in those of templates is far from their beginning.
func variantTable(variants []wait.Variant) table.Table {
	type group struct {
		layer         router.OptInt
		phase, family string
	}
	of := func(v wait.Variant) group { return group{v.Layer, string(v.Phase), v.Family} }
	names := map[group][]string{}
	for _, v := range variants {
		names[of(v)] = append(names[of(v)], v.Name)
	}
	differs := computed(table.Column{Name: "variant", Width: 70}, func(v wait.Variant) any {
		if from := sharedStart(names[of(v)]); from > len(v.Family) {
			return "…" + v.Name[from:]
		}
		return v.Name
	})
	return table.Of("variants",
		"Kernels of which ranks ran different variants for the same work, over the steps that count", variants,
		count("layer"), label("phase"), label("chosen by"), count("rank"), count("instances"), duration("total"),
		duration("mean"), label("family"), differs).LeadBy("total_ns")
}

// sharedStart is how many bytes the names have in common, back to the last mark between
// words.
func sharedStart(names []string) int {
	n := len(names[0])
	for _, name := range names {
		n = min(n, len(name))
		for i := range n {
			if name[i] != names[0][i] {
				n = i
				break
			}
		}
	}
	return strings.LastIndexAny(names[0][:n], ":<, ") + 1
}
