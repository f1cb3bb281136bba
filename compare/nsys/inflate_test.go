package nsys

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// For measurements of the whole program:
//
//	go test ./compare/nsys -run TestInflatedCapture -inflate.out /tmp/big.sqlite -inflate.times 100
var (
	inflateOut   = flag.String("inflate.out", "", "keep the inflated capture as this file")
	inflateTimes = flag.Int("inflate.times", 3, "how many times the capture follows itself in it")
)

// inflate copies an export to a file in which the capture follows itself a number
// of times: times moved by the length of the capture, correlation ids by their
// largest. Kernels, copies, fills, calls, synchronizations and ranges alike.
func inflate(t testing.TB, export, out string, times int) {
	t.Helper()
	content, err := os.ReadFile(export)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, content, 0o600); err != nil {
		t.Fatal(err)
	}
	columns := map[string][]string{}
	queryFile(t, out, "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY m.name, c.cid", func(row *sql.Rows) error {
		var table, column string
		err := row.Scan(&table, &column)
		columns[table] = append(columns[table], column)
		return err
	})
	events := []string{kernelTable, callTable, copyTable, fillTable, rangeTable, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"}
	var first, last, ids int64
	for _, table := range events {
		if columns[table] == nil {
			continue
		}
		id := "0"
		if table != rangeTable {
			id = "correlationId"
		}
		queryFile(t, out, fmt.Sprintf(`SELECT min(start), max(ifnull("end", start)), max(%s) FROM %s`, id, table),
			func(row *sql.Rows) error {
				var from, to, id int64
				err := row.Scan(&from, &to, &id)
				first, last, ids = min(first, from), max(last, to), max(ids, id)
				return err
			})
	}
	var script []string
	for _, table := range events {
		var values []string
		for _, c := range columns[table] {
			switch c {
			case "start", "end":
				c = fmt.Sprintf(`"%s" + i * %d`, c, last-first+1_000_000)
			case "correlationId":
				c = fmt.Sprintf("correlationId + i * %d", ids)
			}
			values = append(values, c)
		}
		if values != nil {
			where := "1"
			if table == rangeTable {
				where = "eventType <> 75" // the creation of a domain
			}
			script = append(script, fmt.Sprintf(`INSERT INTO %s WITH RECURSIVE n(i) AS (SELECT 1 WHERE %d > 1 UNION ALL SELECT i+1 FROM n WHERE i+1 < %d)
				SELECT %s FROM n CROSS JOIN %s WHERE %s`, table, times, times, strings.Join(values, ", "), table, where))
		}
	}
	execFile(t, out, strings.Join(script, ";\n"))
}

// mostBytesPerKernel is what reading and reducing an export may allocate for a kernel, its
// launch and its ranges, kept or not: a tenth more than it does. It decides whether
// an export of 10 GB can be read.
const mostBytesPerKernel = 325

// allocated is the memory that f allocates, in bytes: the least of several runs without
// collections, for what a collection empties is allocated again, and so is what goroutines
// that happen to run at once do not share.
func allocated(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	least := int64(math.MaxInt64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, int64(after.TotalAlloc-before.TotalAlloc))
	}
	return least
}

// A capture that follows itself n times has n times everything.
func TestInflatedCapture(t *testing.T) {
	once := filepath.Join(testdata, "gptoss-ep4-loop/normal.sqlite")
	out := filepath.Join(t.TempDir(), "inflated.sqlite")
	if *inflateOut != "" {
		out = *inflateOut
	}
	n := int64(*inflateTimes)
	inflate(t, once, out, *inflateTimes)
	small, large := mustRead(t, Options{}, once), mustRead(t, Options{}, out)
	if !testing.Short() { // the race detector, which runs short, allocates too
		kernels := (n - 1) * small.Exports[0].Kernels
		more := allocated(func() { mustRead(t, Options{}, out) }) - allocated(func() { mustRead(t, Options{}, once) })
		if more > mostBytesPerKernel*kernels {
			t.Errorf("want at most %d bytes allocated per kernel, have %d", mostBytesPerKernel, more/kernels)
		}
	}
	equal(t, "kernels", large.Exports[0].Kernels, n*small.Exports[0].Kernels)
	equal(t, "calls", large.Exports[0].Launches, n*small.Exports[0].Launches)
	equal(t, "ranges", large.Exports[0].Ranges, n*small.Exports[0].Ranges)
	equal(t, "gpu time", large.Coverage.GPUNS, n*small.Coverage.GPUNS)
	near(t, "launch share", large.Coverage.LaunchShare, 1)
	for i, k := range small.Kernels {
		equal(t, k.Name, large.Kernels[i].Instances, n*k.Instances)
		near(t, k.Name, large.Kernels[i].MedianNS, float64(k.MedianNS))
	}
	for i, p := range small.Phases {
		equal(t, string(p.Phase), large.Phases[i].TotalNS, n*p.TotalNS)
	}
	for i, c := range small.Collectives {
		near(t, "wait", large.Collectives[i].WaitNS, float64(n)*float64(c.WaitNS))
	}
}

// BenchmarkReadInflated is the whole analysis of 392,000 kernels, 1.2 million API
// calls and 171,200 ranges.
func BenchmarkReadInflated(b *testing.B) {
	out := filepath.Join(b.TempDir(), "inflated.sqlite")
	inflate(b, filepath.Join(testdata, "gptoss-ep4-loop/normal.sqlite"), out, 100)
	info, err := os.Stat(out)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(context.Background(), []string{out}, Options{Threshold: 0.1}); err != nil {
			b.Fatal(err)
		}
	}
}
