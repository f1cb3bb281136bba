package capture

import (
	"bytes"
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/moebalance/moebalance/compare/nsys/capture/rows"
)

// rangeReader reads the named ranges. A name is plain text in the row or the
// id of a registered string; reading only one of the two loses ranges.
type rangeReader struct {
	db      *database
	how     depth
	texts   *interner         // names in the rows
	ids     *numbering[int64] // names by id into StringIds
	threads *numbering[int64]
	domains domains
	ranges  []Range // names of registered strings are ^number in ids until finish
	end     int64   // the last time at which a range begins or ends
	trouble Issues
}

// registered marks a span's name as a number in ids instead of texts.
const registered = int32(1) << 30

func (r *rangeReader) read(ctx context.Context, conn *sqlite.Conn) error {
	if !r.db.has(rangeTable, "start", "eventType") {
		return nil
	}
	types, err := r.db.eventTypes(conn)
	if err != nil {
		return err
	}
	r.ranges = make([]Range, 0, r.db.room(rangeTable))
	columns := []string{"start", "end", "eventType", "textId", "globalTid", "endGlobalTid", "domainId"}
	return r.db.stream(ctx, conn, rows.Query{Table: rangeTable, Integers: columns, Text: "text", Rows: rows.All}, func(row *rows.Row) error {
		kind := row.Int(2)
		if !types.matters(kind) || row.Null(2) {
			return nil
		}
		tid := row.Int(4)
		thread, domain := r.threads.of(tid), r.domains.of(tid&processMask, row.Int(6))
		if kind == types.domain {
			r.domains.texts[domain], _ = r.name(row)
			return nil
		}
		s := Range{Start: row.Int(0), Thread: thread, Domain: domain}
		if s.End = row.Int(1); !row.Null(1) {
			if !r.trouble.believable(s.Start, s.End) {
				return nil
			}
			r.end = max(r.end, s.End)
		} else if !r.trouble.believable(s.Start, TimeLimit) {
			return nil
		} else {
			r.trouble.OpenRanges++
			s.End = openEnd
		}
		r.end = max(r.end, s.Start)
		switch {
		case !row.Null(5) && (row.Int(5) != tid || r.how == forStatistics):
			s.Style = CrossThread // the profiler's statistics leave out all that record where they ended
		case kind == types.startEnd || kind == types.importStartEnd:
			s.Style = StartEnd
		}
		s.Name, s.Unnamed = r.name(row)
		r.ranges = append(r.ranges, s)
		return nil
	})
}

// openEnd is the end of a range that was never closed, until the capture's end
// is known.
const openEnd = TimeLimit + 1

// name numbers the name of a row; one without any has the empty text.
func (r *rangeReader) name(row *rows.Row) (name int32, nameless bool) {
	text, ok := row.Text()
	switch {
	case !ok && row.Null(3):
		return r.texts.bytes(nil), true
	case !ok:
		return registered + r.ids.of(row.Int(3)), false
	case r.how == forAnalysis:
		text = withoutInstance(text)
	}
	return r.texts.bytes(text), false
}

// instanceMarks begin what PyTorch appends to an operator's name to make it
// unique: sequence number, sizes and operator ids.
var instanceMarks = [][]byte{[]byte(", op_id = "), []byte(", seq = "), []byte(", sizes = "), []byte(", input_op_ids = ")}

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
	index  map[domainKey]int32
	texts  []int32 // the domain's name; −1 when no row names it
	last   domainKey
	recent int32
}

type domainKey struct{ process, id int64 }

func newDomains() domains {
	return domains{index: map[domainKey]int32{}, texts: []int32{-1}}
}

func (d *domains) of(process, id int64) int32 {
	if id == 0 {
		return 0
	}
	key := domainKey{process, id}
	if key == d.last && d.recent > 0 {
		return d.recent
	}
	i, ok := d.index[key]
	if !ok {
		i = int32(len(d.texts))
		d.index[key] = i
		d.texts = append(d.texts, -1)
	}
	d.last, d.recent = key, i
	return i
}
