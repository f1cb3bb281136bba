package nsys

import (
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
)

func TestStatsByHand(t *testing.T) {
	s := kernel.StatsOf([]int64{40, 10, 20, 30})
	equal(t, "n", s.Instances, 4)
	equal(t, "total", s.TotalNS, 100)
	near(t, "mean", s.MeanNS, 25)
	near(t, "median, the mean of 20 and 30", s.MedianNS, 25)
	equal(t, "min", s.MinNS, 10)
	equal(t, "max", s.MaxNS, 40)
	near(t, "√((15²+5²+5²+15²)/3) = √(500/3)", s.StdDevNS, 12.909944487358056)
	near(t, "p90: the ⌈3.6⌉ = 4th", s.P90NS, 40)
	near(t, "p99", s.P99NS, 40)
	ten := kernel.StatsOf([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	near(t, "p90 of ten: the 9th", ten.P90NS, 9)
	near(t, "p99 of ten: the 10th", ten.P99NS, 10)
	one := kernel.StatsOf([]int64{7})
	if one.StdDevNS.Defined() || one.MedianNS != 7 || one.P90NS != 7 {
		t.Errorf("one instance has no standard deviation: have %+v", one)
	}
	if none := kernel.StatsOf(nil); none.MeanNS.Defined() || none.Instances != 0 {
		t.Errorf("nothing has no mean: have %+v", none)
	}
}

// The union of intervals against a count of covered nanoseconds.
func TestBusyIsTheUnion(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		var events []kernelEvent
		for range rng.IntN(12) {
			events = append(events, kernelEvent{start: rng.Int64N(40), duration: rng.Int64N(15)})
		}
		slices.SortFunc(events, func(a, b kernelEvent) int { return int(a.start - b.start) })
		var b kernel.Busy
		covered := map[int64]bool{}
		for _, e := range events {
			b.Add(e.start, e.duration)
			for ns := e.start; ns < e.start+e.duration; ns++ {
				covered[ns] = true
			}
		}
		if b.NS != int64(len(covered)) {
			t.Fatalf("%+v: want %d, have %d", events, len(covered), b.NS)
		}
	}
}

// Kernels that overlap are busy once on a rank, and once on each rank: rank 0 runs
// k in [10, 30) and [20, 50), rank 1 in [10, 15), so the sum is 20+30+5 and the
// union 40+5. Expert 1 holds both of rank 0.
func TestBusyIsPerRank(t *testing.T) {
	f := newFixture().push(0, 0, 90, "layer 0 expert 1").push(1, 0, 90, "layer 0 expert 2")
	f.call(0, 1, 5).kernel(0, 1, 10, 30, "k").call(0, 2, 6).kernel(0, 2, 20, 50, "k").call(1, 1, 5).kernel(1, 1, 10, 15,
		"k")
	f.sql("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (20,60,0,7,8,%d,5,6),(40,70,0,8,9,%d,5,6)", pid(0),
		pid(0))
	trace := mustRead(t, Options{}, f.write(t, "busy.sqlite"))
	equal(t, "sum", trace.Kernels[0].TotalNS, 20+30+5)
	near(t, "union", trace.Kernels[0].BusyNS, 40+5)
	near(t, "expert 1", trace.Experts[0].BusyNS, 40)
	near(t, "phase of rank 1", trace.Phases[1].BusyNS, 5)
	near(t, "graph 5, in [20, 70)", trace.Graphs[0].BusyNS, 50)
}

// A second opinion by SQL alone: kernels joined to calls and to the ranges
// around them, one nested loop.
func TestPhasesAgreeWithSQL(t *testing.T) {
	for _, name := range []string{"gptoss-ep4-ranks/perfect.rank2.sqlite", "deepseek-ep4-ranks/normal.rank3.sqlite"} {
		path := filepath.Join(testdata, name)
		trace := mustRead(t, Options{}, path)
		got := map[string]int64{}
		for _, c := range trace.Cells {
			if c.Layer != NoID && c.Step != NoID {
				got[string(rune('0'+c.Layer))+" "+string(c.Phase)+" "+string(rune('0'+c.Step))] += c.TotalNS
			}
		}
		rows := 0
		queryFile(t, path, `SELECT substr(n.text, 7, 1) || ' ' || CASE WHEN n.text LIKE '% expert%' THEN 'experts' ELSE substr(n.text, 9) END || ' ' || substr(s.text, 26, 1),
				sum(k.end - k.start)
			FROM CUPTI_ACTIVITY_KIND_KERNEL k
			JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND (r.globalTid & ~16777215) = k.globalPid
			JOIN NVTX_EVENTS n ON n.globalTid = r.globalTid AND n.start <= r.start AND n.end >= r.end AND n.text LIKE 'layer %'
			JOIN NVTX_EVENTS s ON s.globalTid = r.globalTid AND s.start <= r.start AND s.end >= r.end AND s.text LIKE '[Executor] _forward_step %'
			GROUP BY 1`, func(row *sql.Rows) error {
			rows++
			var key string
			var want int64
			if err := row.Scan(&key, &want); err != nil {
				return err
			}
			if got[key] != want {
				t.Errorf("%s: %s: want %d, have %d", name, key, want, got[key])
			}
			return nil
		})
		if rows != len(got) || rows == 0 {
			t.Errorf("%s: SQL finds %d groups, the trace %d", name, rows, len(got))
		}
	}
}

// Reading allocates for what is distinct (names, threads, tables), not for rows:
// the same rows again cost no allocation of their own.
func TestReadingAllocatesNothingPerRow(t *testing.T) {
	if testing.Short() {
		t.Skip("pools and counts of allocations are others under the race detector")
	}
	rows := func(n int) string {
		f := newFixture().push(0, 0, 1<<40,
			"layer 0 experts and a name that is longer than thirty-two bytes, op_id = 1")
		id := f.text("gemm")
		f.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 100*i+10, 100*i+20, 0, 7, i, %d, %d, %d, NULL FROM n", n, pid(0), id, id)
		f.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 100*i, 100*i+1, %d, i, %d FROM n", n, tid(0, 1), id)
		f.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO NVTX_EVENTS SELECT 100*i-1, 100*i+30, 59, text, NULL, globalTid, NULL, 0 FROM n, NVTX_EVENTS WHERE NVTX_EVENTS.rowid = 1", n)
		return f.write(t, "rows.sqlite")
	}
	allocations := func(path string) float64 {
		return testing.AllocsPerRun(3, func() { mustRead(t, Options{}, path) })
	}
	few, many := allocations(rows(1000)), allocations(rows(21_000))
	// a growing slice allocates log(n) times: 60 000 rows more may cost a few hundred
	if more := many - few; more > 300 {
		t.Errorf("60 000 rows more cost %.0f allocations more (%.0f before)", more, few)
	}
}
