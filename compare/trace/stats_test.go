package trace

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
