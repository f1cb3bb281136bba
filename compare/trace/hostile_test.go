package trace

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/testdata/require"
)

func TestWrongFilesAreNamedForWhatTheyAre(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	good := newFixture().work(0, 1, 10, 7, "k").write(t, "good.sqlite")
	content := require.Value(os.ReadFile(good))
	whole := string(content)
	wal := file("wal.sqlite", whole)
	file("wal.sqlite-wal", "something")
	noTable := newFixture().sql("DROP TABLE %s", kernelTable).sql("DROP TABLE %s", graphTable)
	driver := newFixture().sql("DROP TABLE %s", kernelTable).sql("DROP TABLE %s", graphTable).
		sql("CREATE TABLE DIAGNOSTIC_EVENT (text TEXT); INSERT INTO DIAGNOSTIC_EVENT VALUES ('Installed CUDA driver version 11.4 is not supported by this build of Nsight Systems')")
	noStrings, emptyStrings := file("nostrings.sqlite", whole), file("emptystrings.sqlite", whole)
	execFile(t, noStrings, "DROP TABLE StringIds")
	execFile(t, emptyStrings, "DELETE FROM StringIds")
	other := newFixture().sql("DROP TABLE %s", kernelTable).
		sql("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME; DROP TABLE StringIds")
	for _, c := range []struct {
		what, path, want string
	}{
		{"missing", filepath.Join(dir, "no.sqlite"), "no such file"},
		{"a folder", dir, "folder"},
		{"empty", file("empty.sqlite", ""), "empty"},
		{"text", file("text.sqlite", "größe über alles, 12 €"), `"größe über a"`},
		{"a program", file("elf", "\x7fELF\x02\x01"), "binary data"},
		{"zipped", file("x.gz", "\x1f\x8b\x08\x00"), "a gzip file"},
		{"an archive", file("x.sqlite", "PK\x03\x04\x14\x00"), "unpack it"},
		{"saved by an editor", file("bom.sqlite", "\ufeff"+whole), "saved by an editor"},
		{"a Git LFS pointer", file("lfs.sqlite", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
			"git lfs pull"},
		{"a report", file("x.nsys-rep", "…"), "nsys export --type sqlite"},
		{"a half header", file("half.sqlite", whole[:60]), "want 100 bytes, have 60"},
		{"cut", file("cut.sqlite", whole[:len(whole)-1000]), "export it again"},
		{"a write-ahead log beside it", wal, "wal.sqlite-wal"},
		{"copied without its write-ahead log", file("nolog.sqlite", whole[:18]+"\x02\x02"+whole[20:]),
			`"nolog.sqlite-wal" is not here`},
		{"no kernel table", noTable.write(t, "none.sqlite"), "API calls but no kernels"},
		{"a driver that nsys does not know", driver.write(t, "driver.sqlite"),
			"driver version 11.4 is not supported"},
		{"kernels without names", noStrings, "want the names of kernels in a table StringIds"},
		{"kernels with none", emptyStrings, "want the names of kernels in a table StringIds"},
		{"another database", other.write(t, "other.sqlite"), "none of the tables of an nsys export"},
		{"no kernels", newFixture().write(t, "zero.sqlite"), "zero.sqlite"},
	} {
		_, err := Read(context.Background(), []string{c.path, filepath.Join(dir, "later")}, Options{}) // which fails sooner
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: want one line with %q, have %v", c.what, c.want, err)
		}
	}
}

// checkConsistent checks what holds of every trace.
func checkConsistent(t *testing.T, trace *Trace) {
	t.Helper()
	var cells, phases, kernels int64
	for _, c := range trace.Phases {
		phases += c.TotalNS
	}
	for _, c := range trace.Cells {
		cells += c.TotalNS
		if c.TotalNS < 0 || c.BusyNS < 0 || c.BusyNS > c.TotalNS || c.CollectiveNS > c.TotalNS {
			t.Fatalf("have cell %+v", c)
		}
	}
	for _, k := range trace.Kernels {
		kernels += k.TotalNS
		if k.MinNS > k.MaxNS || float64(k.MedianNS) < float64(k.MinNS) || float64(k.MedianNS) > float64(k.MaxNS) {
			t.Fatalf("have kernel %+v", k)
		}
	}
	if cells != kernels || phases != kernels || kernels != trace.Coverage.GPUNS {
		t.Fatalf("cells %d, phases %d, kernels %d, coverage %d", cells, phases, kernels, trace.Coverage.GPUNS)
	}
	if text, err := json.Marshal(trace); err != nil || !utf8.Valid(text) {
		t.Fatalf("want JSON in UTF-8, have %v", err)
	}
}

// Kernels beyond a Σ of times of 64 bits are left out.
func TestSumThatOverflows(t *testing.T) {
	f := newFixture()
	f.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 0, %d, 0, 7, i, %d, %d, 1, NULL FROM n",
		capture.TimeLimit, pid(0), f.text("k"))
	trace, err := Read(context.Background(), []string{f.write(t, "sum.sqlite")}, Options{})
	if err != nil || trace.Exports[0].Kernels != 1023 || !hasWarning(trace.Exports[0].Warnings, "out_of_range") {
		t.Fatalf("have %v", err)
	}
	checkConsistent(t, trace)
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
		require.NoError(t, os.WriteFile(path, content, 0o600))
		trace, err := Read(context.Background(), []string{path}, Options{})
		if err == nil {
			checkConsistent(t, trace)
		}
	})
}
