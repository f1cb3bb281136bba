package render

import (
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/table"
)

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
