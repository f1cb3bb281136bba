package capture

import (
	"bytes"
	"context"
	"slices"

	"github.com/moebalance/moebalance/compare/capture/rows"
)

// eventTypes are the values of NVTX_EVENTS.eventType that matter, the same from 2021 to
// 2026: ranges pushed and popped, started and ended, both of them imported, and domains.
var eventTypes = []int64{59, 60, 70, 71, domainCreated}

const domainCreated = 75

// rangeReader reads the named ranges. A name is plain text in the row or the
// id of a registered string; reading only one of the two loses ranges.
type rangeReader struct {
	db         *database
	strings    *stringLookup
	names      *interner
	ids        *denseIDs[int64] // of registered names
	registered []int32          // by number in ids: the number among names
	threads    *denseIDs[int64]
	domains    *domains
	ranges     []Range
	end        int64 // the last time at which a range begins or ends
	issues     Issues
}

func newRangeReader(db *database, strings *stringLookup) *rangeReader {
	return &rangeReader{
		db: db, strings: strings, names: newInterner(), ids: newIDs(), threads: newIDs(), domains: newDomains(),
		issues: Issues{},
	}
}

func (r *rangeReader) read(ctx context.Context) error {
	if !r.db.has(rangeTable, "start", "eventType") {
		return nil
	}
	r.ranges = make([]Range, 0, r.db.room(rangeTable))
	columns := []string{"start", "end", "eventType", "textId", "globalTid", "domainId"}
	return r.db.stream(ctx, rows.Query{Table: rangeTable, Integers: columns, Text: "text", Rows: rows.All},
		func(row *rows.Row) (err error) {
			kind := row.Int(2)
			if !slices.Contains(eventTypes, kind) || row.Null(2) {
				return nil
			}
			tid := row.Int(4)
			s := Range{Start: row.Int(0), Thread: r.threads.of(tid), Domain: r.domains.of(tid&processMask, row.Int(5))}
			if kind == domainCreated {
				r.domains.names[s.Domain], err = r.name(row)
				return err
			}
			if s.End = row.Int(1); !row.Null(1) {
				if !r.issues.believable(s.Start, s.End) {
					return nil
				}
				r.end = max(r.end, s.End)
			} else if !r.issues.believable(s.Start, TimeLimit) {
				return nil
			} else {
				r.issues[OpenRanges]++
				s.End = openEnd
			}
			r.end = max(r.end, s.Start)
			s.Name, err = r.name(row)
			r.ranges = append(r.ranges, s)
			return err
		})
}

// openEnd is the end of a range that was never closed, until the capture's end
// is known.
const openEnd = TimeLimit + 1

// name numbers the name of a row; one without any has the empty text.
func (r *rangeReader) name(row *rows.Row) (int32, error) {
	text, ok := row.Text()
	if !ok && row.Null(3) {
		return r.names.of(nil), nil
	}
	if ok {
		return r.names.of(withoutInstance(text)), nil
	}
	id := r.ids.of(row.Int(3))
	if int(id) == len(r.registered) {
		text, err := r.strings.find(row.Int(3))
		if err != nil {
			return 0, err
		}
		r.registered = append(r.registered, r.names.of(withoutInstance([]byte(text))))
	}
	return r.registered[id], nil
}

// instanceMarks begin what PyTorch appends to an operator's name to make it
// unique: sequence number, sizes and operator ids.
var instanceMarks = [][]byte{[]byte(", op_id = "), []byte(", seq = "), []byte(", sizes = "),
	[]byte(", input_op_ids = ")}

// withoutInstance cuts them off, so that all instances of an operator share a
// name.
func withoutInstance(name []byte) []byte {
	for _, mark := range instanceMarks {
		if i := bytes.Index(name, mark); i >= 0 {
			name = name[:i]
		}
	}
	return name
}

// domains numbers the range domains of all processes; 0 is the default one.
type domains struct {
	ids   *denseIDs[domainKey]
	names []int32 // the domain's name; −1 when no row names it
}

type domainKey struct{ process, id int64 }

func newDomains() *domains {
	d := &domains{ids: newDenseIDs(func(k domainKey) uint64 { return uint64(k.process ^ k.id) }), names: []int32{-1}}
	d.ids.of(domainKey{})
	return d
}

func (d *domains) of(process, id int64) int32 {
	if id == 0 {
		process = 0
	}
	n := d.ids.of(domainKey{process, id})
	if int(n) == len(d.names) {
		d.names = append(d.names, -1)
	}
	return n
}
