package capture

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/capture/rows"
)

// stream reads a table of events, which may be missing.
func (db *database) stream(ctx context.Context, q rows.Query, visit func(*rows.Row) error) error {
	if !db.has(q.Table, "start") {
		return nil
	}
	q.Progress = db.report
	return q.Each(ctx, db.sql, db.path, visit)
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

// readKernels reads the table of kernels.
func (db *database) readKernels(ctx context.Context, d *draft) error {
	room := db.room(ctx, kernelTable)
	d.Kernels, d.kernelIDs = make([]Kernel, 0, room), make([]uint32, 0, room)
	names := texts(ctx, db, func(text string) int32 {
		d.KernelNames = append(d.KernelNames, demangled(valid(text)))
		return int32(len(d.KernelNames) - 1)
	})
	columns := []string{"start", "end", "correlationId", "globalPid", "demangledName", "deviceId", "graphNodeId",
		"streamId"}
	return db.stream(ctx, rows.Query{Table: kernelTable, Integers: columns}, func(row *rows.Row) (err error) {
		k := Kernel{Start: row.Int(0), End: row.Int(1), Stream: uint16(row.Int(7))}
		if !d.believable(k.Start, k.End) {
			return nil
		}
		k.Device = d.device(row.Int(3), row.Int(5))
		if k.Name, err = names(row.Int(4)); err == nil {
			d.addKernel(k, correlationOf(row.Int(2)), row.Int(6))
		}
		return err
	})
}

// readGraphs reads the table of graphs that were recorded whole.
func (db *database) readGraphs(ctx context.Context, d *draft) error {
	columns := []string{"start", "end", "correlationId", "globalPid", "deviceId"}
	return db.stream(ctx, rows.Query{Table: graphTable, Integers: columns}, func(row *rows.Row) error {
		g := GraphLaunch{Start: row.Int(0), End: row.Int(1), Correlation: correlationOf(row.Int(2))}
		if d.believable(g.Start, g.End) {
			g.Device = d.device(row.Int(3), row.Int(4))
			d.Graphs = append(d.Graphs, g)
		}
		return nil
	})
}

// readNodes reads the table of the creations of graph nodes.
func (db *database) readNodes(ctx context.Context, d *draft) error {
	columns := []string{"start", "globalTid", "graphNodeId", "originalGraphNodeId"}
	return db.stream(ctx, rows.Query{Table: nodeTable, Integers: columns}, func(row *rows.Row) error {
		n := GraphNode{Created: row.Int(0), ID: row.Int(2), Origin: row.Int(3)}
		if d.believable(n.Created, n.Created) {
			n.Thread, n.Process = d.nodeThreads.Number(row.Int(1)), d.processes.Number(row.Int(1)&processMask)
			d.GraphNodes = append(d.GraphNodes, n)
		}
		return nil
	})
}

// readCalls reads the table of API calls. Those that launch or wait are kept, known by their names.
func (db *database) readCalls(ctx context.Context, d *draft) error {
	room := db.room(ctx, kernelTable) // few calls launch nothing or more
	d.Launches, d.launchIDs, d.ofKernel = make([]Call, 0, room), make([]uint32, 0, room), make([]bool, 0, room)
	kinds := texts(ctx, db, callKindOf)
	columns := []string{"correlationId", "globalTid", "start", "end", "nameId", "returnValue"}
	return db.stream(ctx, rows.Query{Table: callTable, Integers: columns}, func(row *rows.Row) error {
		d.APICalls++
		kind, err := kinds(row.Int(4))
		l := Call{Start: row.Int(2), End: row.Int(3)}
		if err != nil || kind == otherCall || row.Int(5) != 0 || !d.believable(l.Start, l.End) {
			return err
		}
		l.Thread = d.callThreads.Number(row.Int(1))
		d.addCall(kind, l, correlationOf(row.Int(0)))
		return nil
	})
}

// eventTypes are the values of NVTX_EVENTS.eventType that matter, the same from 2021 to
// 2026: ranges pushed and popped, started and ended, and both of them imported.
var eventTypes = []int64{59, 60, 70, 71}

// readRanges reads the table of named ranges. A name is plain text in the row or the
// id of a registered string; reading only one of the two loses ranges.
func (db *database) readRanges(ctx context.Context, d *draft) error {
	d.Ranges = make([]Range, 0, db.room(ctx, rangeTable))
	registered := texts(ctx, db, func(text string) int32 { return d.rangeNames.of(withoutInstance([]byte(text))) })
	columns := []string{"start", "eventType", "end", "textId", "globalTid"}
	return db.stream(ctx, rows.Query{Table: rangeTable, Text: "text", Integers: columns}, func(row *rows.Row) (err error) {
		if !slices.Contains(eventTypes, row.Int(1)) {
			return nil
		}
		r := Range{Start: row.Int(0), End: row.Int(2), Thread: d.rangeThreads.Number(row.Int(4))}
		if text, ok := row.Text(); ok || row.Null(3) {
			r.Name = d.rangeNames.of(withoutInstance(text))
		} else if r.Name, err = registered(row.Int(3)); err != nil {
			return err
		}
		if row.Null(2) { // it was never closed, and lasts to the end of the capture
			r.End = TimeLimit
		}
		d.addRange(r)
		return nil
	})
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
