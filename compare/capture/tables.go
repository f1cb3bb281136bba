package capture

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/capture/rows"
)

// table says how a table of events is read: which columns, and what a row fills.
type table struct {
	rows.Query
	fill func(row *rows.Row) error
}

// stream reads a table of events.
func (db *database) stream(ctx context.Context, t table) error {
	if !db.has(t.Table, "start") {
		return nil
	}
	t.Progress = db.report
	return t.Each(ctx, db.sql, db.path, t.fill)
}

// texts gives what the registered strings of an export mean, by id. Only those that occur are
// read: their table may hold millions.
func texts[T any](ctx context.Context, db *database, mean func(text string) T) func(id int64) (T, error) {
	seen := map[int64]T{}
	return func(id int64) (_ T, err error) {
		v, ok := seen[id]
		if !ok {
			text := fmt.Sprintf("string %d (not in the export)", id)
			err = db.rows(ctx, stringTable, []string{"value"}, fmt.Sprintf(" WHERE id = %d", id),
				func(row []string) { text = row[0] })
			v = mean(text)
			seen[id] = v
		}
		return v, err
	}
}

// workTables are the tables of what ran on the GPU: kernels, whole graphs, and the creations
// of graph nodes.
func (db *database) workTables(ctx context.Context, w *work) []table {
	room := db.room(ctx, kernelTable)
	w.Kernels, w.correlations = make([]Kernel, 0, room), make([]uint32, 0, room)
	names := texts(ctx, db, func(text string) int32 {
		w.KernelNames = append(w.KernelNames, demangled(valid(text)))
		return int32(len(w.KernelNames) - 1)
	})
	kernels := func(row *rows.Row) (err error) {
		k := Kernel{Start: row.Int(0), End: row.Int(1)}
		if !w.believable(k.Start, k.End) {
			return nil
		}
		if k.Name, err = names(row.Int(4)); err != nil {
			return err
		}
		k.Device = w.device(row.Int(3), row.Int(5))
		w.add(k, correlationOf(row.Int(2)), row.Int(6))
		return nil
	}
	graphs := func(row *rows.Row) error {
		g := GraphLaunch{Start: row.Int(0), End: row.Int(1), Correlation: correlationOf(row.Int(2))}
		if w.believable(g.Start, g.End) {
			g.Device = w.device(row.Int(3), row.Int(4))
			w.end = max(w.end, g.End)
			w.Graphs = append(w.Graphs, g)
		}
		return nil
	}
	nodes := func(row *rows.Row) error {
		n := GraphNode{Created: row.Int(0), ID: row.Int(2), Origin: row.Int(3)}
		if w.believable(n.Created, n.Created) {
			n.Thread, n.Process = w.nodeThreads.Number(row.Int(1)), w.processes.Number(row.Int(1)&processMask)
			w.GraphNodes = append(w.GraphNodes, n)
		}
		return nil
	}
	return []table{
		{rows.Query{Table: kernelTable, Integers: []string{"start", "end", "correlationId", "globalPid", "demangledName",
			"deviceId", "graphNodeId"}}, kernels},
		{rows.Query{Table: graphTable, Integers: []string{"start", "end", "correlationId", "globalPid", "deviceId"}}, graphs},
		{rows.Query{Table: nodeTable, Integers: []string{"start", "globalTid", "graphNodeId", "originalGraphNodeId"}}, nodes},
	}
}

// callTables is the table of API calls. Those that launch or wait are kept, known by their names.
func (db *database) callTables(ctx context.Context, c *calls) []table {
	room := db.room(ctx, kernelTable) // few calls launch nothing or more
	c.Launches, c.correlations, c.kernel = make([]Call, 0, room), make([]uint32, 0, room), make([]bool, 0, room)
	kinds := texts(ctx, db, callKindOf)
	fill := func(row *rows.Row) error {
		c.APICalls++
		kind, err := kinds(row.Int(4))
		l := Call{Start: row.Int(2), End: row.Int(3)}
		if err != nil || kind == otherCall || row.Int(5) != 0 || !c.believable(l.Start, l.End) {
			return err
		}
		l.Thread = c.threads.Number(row.Int(1))
		c.add(kind, l, correlationOf(row.Int(0)))
		return nil
	}
	return []table{{rows.Query{Table: callTable, Integers: []string{"correlationId", "globalTid", "start", "end", "nameId",
		"returnValue"}}, fill}}
}

// eventTypes are the values of NVTX_EVENTS.eventType that matter, the same from 2021 to
// 2026: ranges pushed and popped, started and ended, and both of them imported.
var eventTypes = []int64{59, 60, 70, 71}

// rangeTables is the table of named ranges. A name is plain text in the row or the
// id of a registered string; reading only one of the two loses ranges.
func (db *database) rangeTables(ctx context.Context, s *spans) []table {
	s.Ranges = make([]Range, 0, db.room(ctx, rangeTable))
	registered := texts(ctx, db, func(text string) int32 { return s.names.of(withoutInstance([]byte(text))) })
	fill := func(row *rows.Row) (err error) {
		if !slices.Contains(eventTypes, row.Int(1)) {
			return nil
		}
		r := Range{Start: row.Int(0), End: row.Int(2), Thread: s.threads.Number(row.Int(4))}
		if text, ok := row.Text(); ok || row.Null(3) {
			r.Name = s.names.of(withoutInstance(text))
		} else if r.Name, err = registered(row.Int(3)); err != nil {
			return err
		}
		if row.Null(2) {
			r.End = openEnd
		}
		s.add(r)
		return nil
	}
	return []table{{rows.Query{Table: rangeTable, Text: "text", Integers: []string{"start", "eventType", "end", "textId",
		"globalTid"}}, fill}}
}

// instanceMarks begin what PyTorch appends to an operator's name to make it
// unique: sequence number, sizes and operator ids.
var instanceMarks = [][]byte{[]byte(", op_id = "), []byte(", seq = "), []byte(", sizes = "),
	[]byte(", input_op_ids = ")}

// withoutInstance cuts them off, so that all instances of an operator share a
// name: "aten::add, op_id = 3" gives "aten::add".
func withoutInstance(name []byte) []byte {
	for _, mark := range instanceMarks {
		name, _, _ = bytes.Cut(name, mark)
	}
	return name
}
