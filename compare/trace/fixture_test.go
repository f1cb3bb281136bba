package trace

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
	_ "modernc.org/sqlite" // the driver
)

// The ids of process p and its thread t as exports serialize them.
func pid(p int64) int64    { return 1<<48 | p<<24 }
func tid(p, t int64) int64 { return pid(p) | t }

// fixture is a hand-made export: a list of statements that begins with the
// tables of nsys 2025.3 as far as the reader looks at them.
type fixture struct {
	statements []string
	strings    []string
}

const fixtureTables = `
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
	correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
	correlationId INTEGER, globalPid INTEGER, graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL);
CREATE TABLE CUDA_GRAPH_NODE_EVENTS (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, graphNodeId INTEGER NOT NULL, originalGraphNodeId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, textId INTEGER, globalTid INTEGER, endGlobalTid INTEGER, domainId INTEGER);
`

func newFixture() *fixture { return &fixture{statements: []string{fixtureTables}} }

func (f *fixture) sql(format string, args ...any) *fixture {
	f.statements = append(f.statements, fmt.Sprintf(format, args...)+";")
	return f
}

// text is the id of a string.
func (f *fixture) text(s string) int {
	for i, have := range f.strings {
		if have == s {
			return i + 1
		}
	}
	f.strings = append(f.strings, s)
	return len(f.strings)
}

// kernel runs on device p of process p from start to end.
func (f *fixture) kernel(p, correlation, start, end int64, name string) *fixture {
	id := f.text(name)
	return f.sql("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%d,%d,%d,7,%d,%d,%d,%d,NULL)", start, end, p,
		correlation, pid(p), id, id)
}

// call is an API call on thread 1 of process p that lasts 1 ns.
func (f *fixture) call(p, correlation, start int64) *fixture {
	return f.sql("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%d,%d,%d,%d,%d)", start, start+1, tid(p, 1),
		correlation, f.text("cudaLaunchKernel_v7000"))
}

// work is a call at start and its kernel 10 ns later.
func (f *fixture) work(p, correlation, start, duration int64, name string) *fixture {
	return f.call(p, correlation, start).kernel(p, correlation, start+10, start+10+duration, name)
}

// push is a range on thread 1 of process p.
func (f *fixture) push(p, start, end int64, name string) *fixture {
	return f.sql("INSERT INTO NVTX_EVENTS VALUES (%d,%d,59,'%s',NULL,%d,NULL,0)", start, end,
		strings.ReplaceAll(name, "'", "''"), tid(p, 1))
}

// environment is a variable of the profiled command.
func (f *fixture) environment(assignment string) *fixture {
	return f.sql("INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE','%s')", assignment)
}

// write makes the file.
func (f *fixture) write(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	script := slices.Clone(f.statements)
	for i, s := range f.strings {
		script = append(script, fmt.Sprintf("INSERT INTO StringIds VALUES (%d, '%s');", i+1,
			strings.ReplaceAll(s, "'", "''")))
	}
	execFile(t, path, strings.Join(script, "\n"))
	return path
}

const (
	kernelTable = "CUPTI_ACTIVITY_KIND_KERNEL"
	graphTable  = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
)

// execFile runs a script on a database file.
func execFile(t testing.TB, path, script string) {
	t.Helper()
	db, err := openFile(path)
	if err == nil {
		_, err = db.Exec("PRAGMA synchronous = OFF;\nBEGIN;\n" + script + ";\nCOMMIT")
		err = errors.Join(err, db.Close())
	}
	require.NoError(t, err)
}

// openFile opens a database file, whatever is in its name.
func openFile(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
}
