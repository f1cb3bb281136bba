package nsys

import (
	"sync/atomic"

	"zombiezen.com/go/sqlite"
)

// meter tells how much of a file has been read: rows in proportion to its bytes.
// Several readers share one; a nil meter tells nobody.
type meter struct {
	bytes  int64 // of the file
	rows   int64 // in the tables that are read
	done   atomic.Int64
	told   atomic.Int64 // bytes
	report func(bytes int64)
}

// meterStride is how many rows pass between two reports.
const meterStride = 1 << 14

// newMeter counts the rows to come by the tables' last row numbers, which cost
// no scan.
func newMeter(conn *sqlite.Conn, db *database, report func(bytes int64)) (*meter, error) {
	if report == nil {
		return nil, nil
	}
	m := &meter{bytes: db.size, report: report}
	for _, table := range []string{kernelTable, callTable, rangeTable} {
		n, err := db.lastRow(conn, table)
		if err != nil {
			return nil, err
		}
		m.rows += n
	}
	return m, nil
}

// each runs a statement as query does, and reports on the way.
func (m *meter) each(stmt *sqlite.Stmt, visit func(*sqlite.Stmt) error) error {
	if m == nil {
		return visitRows(stmt, visit)
	}
	rows := int64(0)
	err := visitRows(stmt, func(row *sqlite.Stmt) error {
		if rows++; rows%meterStride == 0 {
			m.add(meterStride)
		}
		return visit(row)
	})
	m.add(rows % meterStride)
	return err
}

func (m *meter) add(rows int64) {
	done := min(m.done.Add(rows), m.rows)
	if m.rows == 0 {
		return
	}
	now := int64(float64(m.bytes) * float64(done) / float64(m.rows))
	if before := m.told.Load(); now > before && m.told.CompareAndSwap(before, now) {
		m.report(now - before)
	}
}

// finish reports what is left: the file has been read.
func (m *meter) finish() {
	if m != nil {
		m.report(m.bytes - m.told.Swap(m.bytes))
	}
}
