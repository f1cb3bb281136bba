package trace

import (
	"database/sql"
	"path/filepath"
	"testing"
)

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
