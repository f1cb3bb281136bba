package nsys

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/capture"
)

func TestWrongFilesAreNamedForWhatTheyAre(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := newFixture().work(0, 1, 10, 7, "k").write(t, "good.sqlite")
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(content)
	wal := file("wal.sqlite", whole)
	file("wal.sqlite-wal", "something")
	noTable := newFixture().sql("DROP TABLE %s", kernelTable).sql("DROP TABLE %s", graphTable)
	driver := newFixture().sql("DROP TABLE %s", kernelTable).sql("DROP TABLE %s", graphTable).
		sql("CREATE TABLE DIAGNOSTIC_EVENT (text TEXT); INSERT INTO DIAGNOSTIC_EVENT VALUES ('Installed CUDA driver version 11.4 is not supported by this build of Nsight Systems')")
	unnamed := newFixture().work(0, 1, 10, 7, "k").write(t, "unnamed.sqlite")
	execFile(t, unnamed, "DROP TABLE StringIds")
	for _, c := range []struct {
		what, path string
		want       error
		text       string
	}{
		{"missing", filepath.Join(dir, "no.sqlite"), fs.ErrNotExist, "nsys export"},
		{"a folder", dir, capture.ErrNotExport, "folder"},
		{"empty", file("empty.sqlite", ""), capture.ErrNotExport, "empty"},
		{"text", file("text.sqlite", "hello"), capture.ErrNotExport, `"hello"`},
		{"a Git LFS pointer", file("lfs.sqlite", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
			capture.ErrNotExport, "git lfs pull"},
		{"a report", file("x.nsys-rep", "…"), capture.ErrReport, "nsys export --type sqlite"},
		{"a half header", file("half.sqlite", whole[:60]), capture.ErrTruncated, "want a header of 100 bytes, have 60"},
		{"cut", file("cut.sqlite", whole[:len(whole)-1000]), capture.ErrTruncated, "export it again"},
		{"a write-ahead log beside it", wal, capture.ErrUnfinished, "wal.sqlite-wal"},
		{"a write-ahead log that is gone", file("logged.sqlite", whole[:18]+"\x02\x02"+whole[20:]),
			capture.ErrUnfinished, "logged.sqlite-wal"},
		{"no strings", unnamed, capture.ErrDamaged,
			"table StringIds: want the columns id, value, have no such table; export it again"},
		{"no ends", newFixture().work(0, 1, 10, 7, "k").sql("ALTER TABLE %s DROP COLUMN \"end\"", kernelTable).write(t,
			"noends.sqlite"), capture.ErrDamaged, "want the columns start, end, have only start, "},
		{"no kernel table", noTable.write(t, "none.sqlite"), capture.ErrNoKernels, "API calls but no kernels"},
		{"a driver that nsys does not know", driver.write(t, "driver.sqlite"), capture.ErrNoKernels,
			"driver version 11.4 is not supported"},
		{"no kernels", newFixture().write(t, "zero.sqlite"), capture.ErrNoKernels, ""},
	} {
		_, err := Read(context.Background(), []string{c.path}, Options{})
		if !errors.Is(err, c.want) || err == nil || !strings.Contains(err.Error(), c.text) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: want one line of %q with %q, have %v", c.what, c.want, c.text, err)
		}
	}
}

// An error quotes no more of a file than a line takes.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 5000)
	path := newFixture().work(0, 1, 10, 7, "k").sql("PRAGMA writable_schema = ON").
		sql("INSERT INTO sqlite_master VALUES ('table', '%s', '%s', 2, 'CREATE TABLE %s (')", long, long, long).write(t,
		"long.sqlite")
	_, err := Read(context.Background(), []string{path}, Options{})
	if !errors.Is(err, capture.ErrDamaged) || len(err.Error()) > 600+len(path) {
		t.Errorf("want %v in 600 bytes, have %v", capture.ErrDamaged, err)
	}
}

// The first error ends the reading of the other files: their rows are not all read.
func TestErrorCancelsTheOthers(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.sqlite")
	if err := os.WriteFile(bad, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{bad}
	size := int64(0)
	for range 20 {
		path := filepath.Join(testdata, "gptoss-ep4-loop/normal.sqlite")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		paths, size = append(paths, path), size+info.Size()
	}
	var read atomic.Int64
	_, err := Read(context.Background(), paths, Options{Progress: func(n int64) { read.Add(n) }})
	if !errors.Is(err, capture.ErrNotExport) || read.Load() > size/2 {
		t.Errorf("want %v and most files unread, have %v after %d of %d bytes", capture.ErrNotExport, err, read.Load(),
			size)
	}
}

// An export cut at any length gives an error, never a result: SQLite would read
// the pages that are left.
func TestCutAtManyLengths(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(testdata, "gptoss-graph/node-normal.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.sqlite")
	for n := 0; n < len(content); n += 1 + len(content)/97 {
		if err := os.WriteFile(path, content[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if trace, err := Read(context.Background(), []string{path}, Options{}); err == nil {
			t.Fatalf("cut at %d of %d bytes: want an error, have %d kernels", n, len(content), trace.Exports[0].Kernels)
		}
	}
}

// Overwritten pages give an error or a result that is consistent in itself.
func TestOverwrittenPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector, which has no more to find here than in the other tests")
	}
	content, err := os.ReadFile(filepath.Join(testdata, "gptoss-graph/node-normal.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	path := filepath.Join(t.TempDir(), "damaged.sqlite")
	failed := 0
	for range 150 {
		bad := bytes.Clone(content)
		for range 1 + rng.IntN(4) {
			at := 100 + rng.IntN(len(bad)-100)
			end := min(len(bad), at+1+rng.IntN(4096))
			for i := at; i < end; i++ {
				bad[i] = byte(rng.Uint32())
			}
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := Read(context.Background(), []string{path}, Options{})
		if err != nil {
			failed++
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("want one line, have %v", err)
			}
			continue
		}
		checkConsistent(t, trace)
	}
	if failed == 0 || failed == 150 {
		t.Errorf("want some of 150 damaged files to be unreadable, have %d", failed)
	}
}

// checkConsistent checks what holds of every trace.
func checkConsistent(t *testing.T, trace *Trace) {
	t.Helper()
	var cells, kernels int64
	for _, c := range trace.Cells {
		cells += c.TotalNS
		if c.TotalNS < 0 || c.BusyNS < 0 || c.BusyNS > c.TotalNS || c.CollectiveNS > c.TotalNS {
			t.Fatalf("have cell %+v", c)
		}
	}
	for _, k := range trace.Kernels {
		kernels += k.TotalNS
		if busy := float64(k.BusyNS); !(busy <= float64(k.TotalNS)) {
			t.Fatalf("have kernel %+v", k)
		}
		if k.MinNS > k.MaxNS || float64(k.MedianNS) < float64(k.MinNS) || float64(k.MedianNS) > float64(k.MaxNS) {
			t.Fatalf("have kernel %+v", k)
		}
	}
	if cells != kernels || kernels != trace.Coverage.GPUNS {
		t.Fatalf("cells %d, kernels %d, coverage %d", cells, kernels, trace.Coverage.GPUNS)
	}
	text, err := json.Marshal(trace)
	if err != nil || !utf8.Valid(text) {
		t.Fatalf("want JSON in UTF-8, have %v", err)
	}
}

func TestStrangeNamesAndTimes(t *testing.T) {
	f := newFixture().push(0, 0, 5000, "layer 0 experts")
	f.work(0, 1, 10, 7, strings.Repeat("cutlass::device_kernel<", 3000))
	f.sql("INSERT INTO StringIds VALUES (900, CAST(x'6bff41' AS TEXT))").call(0, 2, 40).
		sql("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (50,60,0,7,2,%d,900,900,NULL)", pid(0)).
		call(0, 3, 70).sql("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (80,90,0,7,3,%d,12345,12345,NULL)", pid(0)).
		sql("INSERT INTO NVTX_EVENTS VALUES (0,5000,59,CAST(x'6c61796572ff' AS TEXT),NULL,%d,NULL,0)", tid(0, 1)).
		sql("INSERT INTO NVTX_EVENTS VALUES (0,5000,59,NULL,NULL,NULL,NULL,NULL)")
	trace := mustRead(t, Options{}, f.write(t, "strange.sqlite"))
	equal(t, "time", phaseTime(trace, 0, 0, PhaseExperts), 27)
	checkConsistent(t, trace)
}

// Σ of times beyond 64 bits is an error, not a negative total.
func TestSumThatOverflows(t *testing.T) {
	f := newFixture()
	f.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 0, %d, 0, 7, i, %d, %d, 1, NULL FROM n",
		capture.TimeLimit, pid(0), f.text("k"))
	_, err := Read(context.Background(), []string{f.write(t, "sum.sqlite")}, Options{})
	if !errors.Is(err, capture.ErrDamaged) {
		t.Errorf("want ErrDamaged, have %v", err)
	}
}

// Reading creates nothing, beside the file or in it.
func TestReadingLeavesNoTrace(t *testing.T) {
	path := newFixture().work(0, 1, 10, 7, "k").sql("PRAGMA user_version = 1").write(t, "ro file?#%.sqlite")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Dir(path), 0o700)
	mustRead(t, Options{}, path)
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the export changed: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("want only the export in its folder, have %v, %v", entries, err)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Read(ctx, []string{filepath.Join(testdata, "gptoss-ep4-loop/normal.sqlite")}, Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("want context.Canceled, have %v", err)
	}
}

// Any bytes: an error or a trace that is consistent in itself.
func FuzzExport(f *testing.F) {
	path := newFixture().push(0, 0, 50, "layer 0 experts").work(0, 1, 10, 7, "k").write(f, "seed.sqlite")
	content, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte("version https://git-lfs.github.com/spec/v1\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "x.sqlite")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := Read(context.Background(), []string{path}, Options{})
		if err == nil {
			checkConsistent(t, trace)
		}
	})
}

// Rows are read wherever their numbers are: below zero, with holes, at the ends of
// 64 bits, and more of them than the last number says.
func TestRowNumbers(t *testing.T) {
	few := []int64{-1, 0, 1, 9}
	for n := range int64(40) {
		few = append(few, -100-n, 20+n)
	}
	for _, numbers := range [][]int64{few, append(slices.Clone(few), math.MinInt64, math.MaxInt64)} {
		f := newFixture()
		for i, n := range numbers {
			f.sql("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (rowid, start, end, deviceId, streamId, correlationId, globalPid, demangledName, shortName) VALUES (%d, %d, %d, 0, 7, %d, %d, %d, 1)",
				n, 1000*i, 1000*i+i, i+1, pid(0), f.text("k")).call(0, int64(i+1), int64(1000*i-1))
		}
		trace := mustRead(t, Options{}, f.write(t, "numbers.sqlite"))
		equal(t, "kernels", trace.Exports[0].Kernels, int64(len(numbers)))
		equal(t, "time", trace.Coverage.GPUNS, int64(len(numbers)*(len(numbers)-1)/2))
		near(t, "launched", trace.Coverage.LaunchShare, 1)
	}
}

// One correlation id for all of 30,000 calls and kernels: every kernel gets the
// last call before it, in n log n.
func TestOneCorrelationIDForAll(t *testing.T) {
	const n = 30_000
	f := newFixture().push(0, 0, 100*n/2, "layer 0 experts").push(0, 100*n/2+1, 200*n, "layer 1 experts")
	id, call := f.text("k"), f.text("cudaLaunchKernel_v7000")
	f.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 100*i+10, 100*i+13, 0, 7, 1, %d, %d, %d, NULL FROM n", n, pid(0), id, id)
	f.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 100*i, 100*i+1, %d, 1, %d FROM n", n, tid(0, 1), call)
	trace := mustRead(t, Options{}, f.write(t, "same.sqlite"))
	// calls 1 … n/2 begin within the first range (call n/2 on its last nanosecond)
	equal(t, "layer 0", phaseTime(trace, 0, 0, PhaseExperts), 3*n/2)
	equal(t, "layer 1", phaseTime(trace, 0, 1, PhaseExperts), 3*n/2)
	if !hasWarning(trace.Exports[0].Warnings, "correlation_reused") {
		t.Errorf("have %v", trace.Exports[0].Warnings)
	}
}
