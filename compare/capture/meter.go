package capture

import "sync/atomic"

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

// newMeter is the meter of an export whose rows are counted.
func newMeter(db *database, report func(bytes int64)) *meter {
	if report == nil {
		return nil
	}
	m := &meter{bytes: db.size, report: report}
	for _, n := range db.lastRow {
		m.rows += n
	}
	return m
}

func (m *meter) add(rows int64) {
	if m == nil {
		return
	}
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
