package source

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/trace"
)

// joined writes one capture of what two captures of a rank recorded, one behind the other,
// with the ranges of the hook around its steps.
func joined(t *testing.T, path, normal, perfect string) {
	t.Helper()
	content, err := os.ReadFile(normal)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	do := func(format string, args ...any) {
		t.Helper()
		if _, err := db.Exec(fmt.Sprintf(format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	number := func(query string) (n int64) {
		t.Helper()
		if err := db.QueryRow(query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const apart = 10_000_000 // ids and times
	do("ATTACH '%s' AS other", perfect)
	begin := number("SELECT max(end) FROM CUPTI_ACTIVITY_KIND_KERNEL") + apart
	shift := begin - number("SELECT min(start) FROM other.NVTX_EVENTS WHERE eventType = 59")
	process := number("SELECT globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1")
	thread := process - number("SELECT globalPid FROM other.CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1")
	do("INSERT INTO StringIds SELECT id + %d, value FROM other.StringIds", apart)
	for table, values := range map[string]map[string]string{
		"CUPTI_ACTIVITY_KIND_KERNEL": {"globalPid": fmt.Sprint(process), "correlationId": "", "demangledName": "",
			"shortName": "", "mangledName": ""},
		"CUPTI_ACTIVITY_KIND_RUNTIME": {"correlationId": "", "nameId": "", "callchainId": "NULL"},
		"NVTX_EVENTS":                 {"textId": ""},
	} {
		rows, err := db.Query("SELECT name FROM pragma_table_info('" + table + "')")
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for rows.Next() {
			var column string
			if err := rows.Scan(&column); err != nil {
				t.Fatal(err)
			}
			switch value, changed := values[column]; {
			case column == "start" || column == "end":
				column = fmt.Sprintf("%s + %d", column, shift)
			case column == "globalTid":
				column = fmt.Sprintf("globalTid + %d", thread)
			case changed && value == "":
				column = fmt.Sprintf("%s + %d", column, apart)
			case changed:
				column = value
			}
			list = append(list, column)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		do("INSERT INTO %s SELECT %s FROM other.%[1]s", table, strings.Join(list, ", "))
	}
	do(`WITH steps AS (SELECT e.rowid AS id, row_number() OVER (ORDER BY e.start) AS number FROM NVTX_EVENTS e
		LEFT JOIN StringIds s ON s.id = e.textId WHERE coalesce(e.text, s.value) LIKE '[Executor]%%')
		UPDATE NVTX_EVENTS SET textId = NULL, text = 'moebalance step=' || number || ' tokens=1024 sequence=1 arm=' ||
		iif(start < %d, 'normal', 'perfect') FROM steps WHERE NVTX_EVENTS.rowid = steps.id`, begin)
}

// Captures of a launch that switched its router hold both arms: compared with themselves
// they say what the captures of each arm do, and alone they are of the normal arm.
func TestOneCaptureOfBothArms(t *testing.T) {
	const captures = "../../testdata/deepseek-ep4-ranks"
	folder := t.TempDir()
	for rank := range 4 {
		file := fmt.Sprintf("rank%d.sqlite", rank)
		joined(t, filepath.Join(folder, file), filepath.Join(captures, "normal."+file),
			filepath.Join(captures, "perfect."+file))
	}
	read := func(args ...string) (c diff.Comparison) {
		t.Helper()
		named, err := ReadArms(args, nil)
		if err != nil {
			t.Fatal(err)
		}
		var arms [2]*trace.Trace
		for i, s := range named.Sides {
			if arms[i], err = s.Trace(context.Background(), trace.Options{Threshold: 0.1}, Statistics{}); err != nil {
				t.Fatal(err)
			}
		}
		return diff.Compare(arms[0], arms[1])
	}
	want := read(captures)
	for _, have := range []diff.Comparison{read(folder), read(filepath.Join(folder, "*.sqlite"))} {
		if !have.Comparable || have.Normal.Evidence != "the hook's ranges of steps" ||
			math.Abs(float64(have.Step.Ratio/want.Step.Ratio-1)) > 1e-9 ||
			have.Normal.Steps != want.Normal.Steps {
			t.Errorf("have %+v, %v and %+v, want %+v", have.Normal, have.Refusals, have.Step, want.Step)
		}
	}
	items, err := Gather(context.Background(), []string{folder}, GatherOptions{Threshold: 0.1,
		Progress: func([]string) (func(int64), func()) { return func(int64) {}, func() {} }})
	if err != nil || len(items) != 3 || items[0].Trace.Arm != "normal" || items[1].Trace.Arm != "perfect" ||
		math.Abs(float64(items[2].Compared.Step.Ratio/want.Step.Ratio-1)) > 1e-9 {
		t.Errorf("a report has %+v, %v", items, err)
	}
	alone, err := trace.Read(context.Background(), []string{filepath.Join(folder, "rank0.sqlite")}, trace.Options{})
	if err != nil || alone.Arm != "normal" || alone.Warnings[0].Code != "other_arms" {
		t.Errorf("have %v, %+v", err, alone)
	}
}
