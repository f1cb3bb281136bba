package capture

import "sync"

// meter tells how much of a file has been read: rows in proportion to its bytes. Several readers
// share one.
type meter struct {
	lock   sync.Mutex
	bytes  int64 // of the file
	rows   int64 // in the tables that are read
	done   int64 // rows
	told   int64 // bytes
	report func(bytes int64)
}

// meterStride is how many rows pass between two reports.
const meterStride = 1 << 14

func (m *meter) add(rows int64) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.done += rows
	m.tell(int64(float64(m.bytes) * float64(min(m.done, m.rows)) / float64(max(m.rows, 1))))
}

// tell reports the bytes up to here that were not reported before.
func (m *meter) tell(bytes int64) {
	if m.report != nil && bytes > m.told {
		m.report(bytes - m.told)
		m.told = bytes
	}
}
