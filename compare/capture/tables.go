package capture

import (
	"bytes"
	"context"
	"slices"

	"github.com/moebalance/moebalance/compare/capture/rows"
)

// table says how a table of events is read: which columns, and what a row fills.
type table struct {
	name    string
	need    int      // how many of the columns, from the first on, it cannot be read without
	columns []string // of integers; one that is not there reads as NULL
	text    string   // a column of text, or none
	fill    func(row *rows.Row) error
}

// stream reads a table of events, with its times from the base on.
func (db *database) stream(ctx context.Context, t table) error {
	if !db.has(t.name, t.columns[:t.need]...) {
		return nil
	}
	n := int64(0)
	defer func() { db.meter.add(n % meterStride) }()
	start, end := slices.Index(t.columns, "start"), slices.Index(t.columns, "end")
	return rows.Query{Table: t.name, Integers: t.columns, Text: t.text}.Each(ctx, db.sql, db.file,
		func(row *rows.Row) error {
			if n++; n%meterStride == 0 {
				db.meter.add(meterStride)
			}
			if db.base != 0 {
				row.Subtract(start, db.base)
				if end >= 0 {
					row.Subtract(end, db.base)
				}
			}
			return t.fill(row)
		})
}

// workTables are the tables of what ran on the GPU: kernels, whole graphs, and the creations
// of graph nodes.
func (db *database) workTables(w *work, names *stringLookup) []table {
	room := db.room(kernelTable)
	w.kernels, w.correlations = make([]Kernel, 0, room), make([]uint32, 0, room)
	ids, name := newTextIDs(), "demangledName"
	if !db.has(kernelTable, name) {
		name = "shortName"
	}
	kernels := func(row *rows.Row) error {
		k := Kernel{Start: row.Int(0), End: row.Int(1)}
		if !w.issues.believable(k.Start, k.End) {
			return nil
		}
		if k.Name = ids.number(row.Int(4)); int(k.Name) == len(w.names) {
			text, _, err := names.find(row.Int(4))
			if err != nil {
				return err
			}
			w.names = append(w.names, demangled(valid(text)))
		}
		k.Device = w.device(row.Int(3), row.Int(5))
		return w.add(k, correlationOf(row.Int(2), !row.Null(2)), row.Int(7), row.Int(6))
	}
	graphs := func(row *rows.Row) error {
		g := GraphLaunch{Start: row.Int(0), End: row.Int(1), Correlation: row.Int(2), Graph: row.Int(5), Launch: -1}
		if w.issues.believable(g.Start, g.End) {
			if row.Null(2) {
				g.Correlation = -1
			}
			g.Device = w.device(row.Int(3), row.Int(4))
			w.end = max(w.end, g.End)
			w.graphs = append(w.graphs, g)
		}
		return nil
	}
	nodes := func(row *rows.Row) error {
		n := GraphNode{Created: row.Int(0), ID: row.Int(2), Origin: row.Int(3)}
		if w.issues.believable(n.Created, n.Created) {
			n.Thread, n.Process = w.nodeThreads.Number(row.Int(1)), w.processes.Number(row.Int(1)&processMask)
			w.nodes = append(w.nodes, n)
		}
		return nil
	}
	return []table{
		{kernelTable, 2, []string{"start", "end", "correlationId", "globalPid", name, "deviceId", "graphNodeId",
			"streamId"}, "", kernels},
		{graphTable, 2, []string{"start", "end", "correlationId", "globalPid", "deviceId", "graphId"}, "", graphs},
		{nodeTable, 3, []string{"start", "globalTid", "graphNodeId", "originalGraphNodeId"}, "", nodes},
	}
}

// callTables is the table of API calls. Those that launch are kept, known by their names; a
// call without a name may be one.
func (db *database) callTables(c *calls, names *stringLookup) []table {
	room := db.room(kernelTable) // few calls launch nothing or more
	c.list, c.correlations, c.kernel = make([]Launch, 0, room), make([]uint32, 0, room), make([]bool, 0, room)
	ids, kinds := newTextIDs(), []callKind(nil)
	kindOf := func(row *rows.Row) (callKind, error) {
		if row.Null(4) {
			return graphCall, nil
		}
		id := ids.number(row.Int(4))
		if int(id) == len(kinds) {
			text, known, err := names.find(row.Int(4))
			if err != nil {
				return 0, err
			}
			kind := graphCall
			if known {
				kind = callKindOf(text)
			}
			kinds = append(kinds, kind)
		}
		return kinds[id], nil
	}
	fill := func(row *rows.Row) error {
		c.count++
		kind, err := kindOf(row)
		l := Launch{Start: row.Int(2), End: row.Int(3)}
		if err != nil || kind == otherCall || row.Int(5) != 0 || !c.issues.believable(l.Start, l.End) {
			return err
		}
		l.Thread = c.threads.Number(row.Int(1))
		process := c.processes.Number(row.Int(1) & processMask)
		c.add(kind, l, process, correlationOf(row.Int(0), !row.Null(0)))
		return nil
	}
	return []table{{callTable, 4, []string{"correlationId", "globalTid", "start", "end", "nameId", "returnValue"}, "",
		fill}}
}

// domainCreated is the type of the event that gives a domain of ranges its name.
const domainCreated = 75

// eventTypes are the values of NVTX_EVENTS.eventType that matter, the same from 2021 to
// 2026: ranges pushed and popped, started and ended, both of them imported, and domains.
var eventTypes = []int64{59, 60, 70, 71, domainCreated}

// rangeTables is the table of named ranges. A name is plain text in the row or the
// id of a registered string; reading only one of the two loses ranges.
func (db *database) rangeTables(s *spans, names *stringLookup) []table {
	s.list = make([]Range, 0, db.room(rangeTable))
	ids, registered := newTextIDs(), []int32(nil) // names by number in ids
	name := func(row *rows.Row) (int32, error) {
		text, ok := row.Text()
		if ok || row.Null(3) {
			return s.names.of(withoutInstance(text)), nil
		}
		id := ids.number(row.Int(3))
		if int(id) == len(registered) {
			text, _, err := names.find(row.Int(3))
			if err != nil {
				return 0, err
			}
			registered = append(registered, s.names.of(withoutInstance([]byte(text))))
		}
		return registered[id], nil
	}
	type key struct{ process, id int64 }
	domains := NewIndex[key](0)
	domains.Number(key{}) // the default one, of all processes
	fill := func(row *rows.Row) error {
		kind := row.Int(1)
		if !slices.Contains(eventTypes, kind) || row.Null(1) {
			return nil
		}
		r, tid, domain := Range{Start: row.Int(0), End: row.Int(2)}, row.Int(4), key{id: row.Int(5)}
		if domain.id != 0 {
			domain.process = tid & processMask
		}
		if r.Domain = domains.Number(domain); int(r.Domain) == len(s.domains) {
			s.domains = append(s.domains, "")
		}
		number, err := name(row)
		if kind == domainCreated {
			s.domains[r.Domain] = valid(s.names.names[number])
			return err
		}
		r.Thread, r.Name = s.threads.Number(tid), number
		s.add(r, !row.Null(2))
		return err
	}
	return []table{{rangeTable, 2, []string{"start", "eventType", "end", "textId", "globalTid", "domainId"}, "text",
		fill}}
}

// instanceMarks begin what PyTorch appends to an operator's name to make it
// unique: sequence number, sizes and operator ids.
var instanceMarks = [][]byte{[]byte(", op_id = "), []byte(", seq = "), []byte(", sizes = "),
	[]byte(", input_op_ids = ")}

// withoutInstance cuts them off, so that all instances of an operator share a
// name: "aten::add, op_id = 3" gives "aten::add".
func withoutInstance(name []byte) []byte {
	for _, mark := range instanceMarks {
		if i := bytes.Index(name, mark); i >= 0 {
			name = name[:i]
		}
	}
	return name
}

// adopt gives what ran in an export without processes (no such column, or NULL in every row) to
// the only process that launched anything. With several, whose it is is not known.
func (w *work) adopt(c *calls) {
	none := slices.Index(w.processes.Values, 0)
	if none < 0 {
		return
	}
	w.noPIDs = len(w.devices.Values) > 0 &&
		!slices.ContainsFunc(w.devices.Values, func(d Device) bool { return int(d.Process) != none })
	if w.noPIDs && len(c.processes.Values) == 1 {
		only, devices := w.processes.Number(c.processes.Values[0]), NewIndex[Device](0)
		for _, d := range w.devices.Values { // which keep their numbers
			devices.Number(Device{only, d.Ordinal})
		}
		w.devices = devices
	}
	for _, k := range w.kernels {
		if !w.noPIDs && int(w.devices.Values[k.Device].Process) == none {
			w.issues[NoPID]++
		}
	}
}
