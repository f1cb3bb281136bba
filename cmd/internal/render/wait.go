package render

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
)

const waitTitle = "Waiting at the collective behind the experts: last − mean arrival per step, and its parts: last − mean rank (±: 95 % over steps)"

// waitTable is who waits for whom, and why.
func waitTable(waits []wait.Wait) output.Table {
	return output.Of("waits", waitTitle, waits, waitColumns(func(w wait.Wait) wait.Wait { return w })...).LeadBy("mean_wait_ns")
}

// narrow is a table for an overview: waits come without the parts' intervals and what is
// unknown in every row.
func narrow(t output.Table) output.Table {
	if t.Name != "waits" {
		return t
	}
	rows, columns, intervals := t.Rows, t.Columns, 0
	t.Rows, t.Columns = make([][]any, len(rows)), nil
	for c, column := range columns {
		if column.Name == "±" {
			intervals++
		}
		known := slices.ContainsFunc(rows, func(row []any) bool { v, number := row[c].(router.Number); return !number || v.Defined() })
		if column.Name == "±" && intervals > 1 || !known {
			continue
		}
		t.Columns = append(t.Columns, column)
		for r := range rows {
			t.Rows[r] = append(t.Rows[r], rows[r][c])
		}
	}
	return t
}

// waitColumns are those of an item with a Wait.
func waitColumns[T any](of func(T) wait.Wait) []output.Column {
	field := func(c output.Column, cell func(wait.Wait) any) output.Column {
		return computed(c, func(item T) any { return cell(of(item)) })
	}
	interval := func(c output.Column, in func(wait.Wait) (router.Number, wait.Interval)) []output.Column {
		half := duration("±", strings.TrimSuffix(c.Key, "_ns")+"_half_width_ns")
		return []output.Column{
			field(c, func(w wait.Wait) any { ns, _ := in(w); return ns }),
			field(half, func(w wait.Wait) any { _, i := in(w); return (i.High - i.Low) / 2 }),
		}
	}
	columns := []output.Column{
		field(count("layer"), func(w wait.Wait) any { return w.Layer }),
		field(count("steps"), func(w wait.Wait) any { return w.Steps }),
		field(count("last rank"), func(w wait.Wait) any { return w.LastRank }),
		field(count("in steps", "last_steps"), func(w wait.Wait) any { return w.LastSteps }),
		field(count("most experts", "most_expert_rank"), func(w wait.Wait) any { return w.MostExpertRank }),
	}
	columns = append(columns, interval(duration("wait", "mean_wait_ns"), func(w wait.Wait) (router.Number, wait.Interval) { return w.WaitNS, w.Intervals.Wait })...)
	for i, p := range (wait.Wait{}).List() {
		columns = append(columns, interval(duration(p.Name, p.Key), func(w wait.Wait) (router.Number, wait.Interval) { return w.List()[i].NS, w.List()[i].Interval })...)
	}
	return append(columns,
		field(duration("Python GC", "host_gc_ns"), func(w wait.Wait) any { return w.GCNS }),
		field(duration("GIL", "host_gil_ns"), func(w wait.Wait) any { return w.GILNS }))
}

// variantTable is which rank ran which variant of a kernel. People see where the names
// of a family differ, which in those of templates is far from their beginning.
func variantTable(variants []wait.Variant) output.Table {
	type group struct {
		layer         router.Whole
		phase, family string
	}
	of := func(v wait.Variant) group { return group{v.Layer, string(v.Phase), v.Family} }
	names := map[group][]string{}
	for _, v := range variants {
		names[of(v)] = append(names[of(v)], v.Name)
	}
	differs := computed(output.Column{Name: "variant", Width: 70}, func(v wait.Variant) any {
		if from := sharedStart(names[of(v)]); from > len(v.Family) {
			return "…" + v.Name[from:]
		}
		return v.Name
	})
	return output.Of("variants", "Kernels of which ranks ran different variants for the same work, over the steps that count", variants,
		count("layer"), label("phase"), label("chosen by"), count("rank"), count("instances"), duration("total"), duration("mean"), label("family"), differs).LeadBy("total_ns")
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
