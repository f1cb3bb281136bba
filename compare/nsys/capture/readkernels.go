package capture

import (
	"context"
	"fmt"
	"math"

	"zombiezen.com/go/sqlite"

	"github.com/moebalance/moebalance/compare/nsys/capture/rows"
)

// workReader reads what ran on the GPU: kernels, whole graphs and, for
// statistics, copies and fills; and the births of graph nodes.
type workReader struct {
	db        *database
	how       depth
	names     *numbering[int64] // ids into StringIds
	processes *numbering[int64]
	units     *numbering[Device]
	streams   *numbering[Stream] // of kernels
	threads   *numbering[int64]  // of graph nodes' births
	replayed  []int64
	kernels   []Kernel
	space     []Kernel // for the kernels of both halves
	moves     []Kernel // copies and fills
	runs      []GraphLaunch
	nodes     []GraphNode
	end       int64
	total     uint64
	trouble   Issues
}

func newWorkReader(db *database, how depth) *workReader {
	return &workReader{
		db: db, how: how, names: newIDs(), processes: newIDs(), units: newSpread(Device.bits),
		streams: newSpread(Stream.bits), threads: newIDs(),
	}
}

// read reads everything but the second half of the kernels.
func (w *workReader) read(ctx context.Context, conn *sqlite.Conn) error {
	w.trouble.NoPIDs = w.db.has(kernelTable) && !w.db.has(kernelTable, "globalPid")
	left, _ := rows.Halves(w.db.lastRow[kernelTable])
	if err := w.readWork(ctx, conn, kernelTable, left, &w.kernels); err != nil {
		return err
	}
	if w.how == forStatistics {
		for _, table := range []string{copyTable, fillTable} {
			if err := w.readWork(ctx, conn, table, rows.All, &w.moves); err != nil {
				return err
			}
		}
	}
	if err := w.readGraphs(ctx, conn); err != nil {
		return err
	}
	return w.readNodes(ctx, conn)
}

// readRest reads the second half of the kernels.
func (w *workReader) readRest(ctx context.Context, conn *sqlite.Conn) error {
	_, right := rows.Halves(w.db.lastRow[kernelTable])
	return w.readWork(ctx, conn, kernelTable, right, &w.kernels)
}

// share gives the readers of two halves one piece of memory for their kernels.
func (w *workReader) share(rest *workReader) {
	n := w.db.room(kernelTable)
	w.space = make([]Kernel, n)
	w.kernels, rest.kernels = w.space[:0:n/2], w.space[n/2:n/2]
}

// join appends what readRest found, with the same numbers as one reader of all
// would have given.
func (w *workReader) join(rest *workReader) error {
	names, units := make([]int32, len(rest.names.values)), make([]int32, len(rest.units.values))
	for i, id := range rest.names.values {
		names[i] = w.names.of(id)
	}
	for i, u := range rest.units.values {
		units[i] = w.units.of(Device{w.processes.of(rest.processes.values[u.Process]), u.Ordinal})
	}
	for _, s := range rest.streams.values {
		w.streams.of(Stream{units[s.Device], s.ID})
	}
	for i := range rest.kernels {
		k := &rest.kernels[i]
		k.Name, k.Device = names[k.Name], units[k.Device]
		if k.GraphNode > 0 {
			k.GraphNode += int32(len(w.replayed))
		}
	}
	if len(w.kernels) <= len(w.space)/2 { // they are still where share put them
		w.kernels = w.space[:len(w.kernels)]
	}
	w.kernels = append(w.kernels, rest.kernels...)
	w.replayed = append(w.replayed, rest.replayed...)
	w.end = max(w.end, rest.end)
	w.trouble.add(rest.trouble)
	if w.total += rest.total; w.total > math.MaxInt64 {
		return errTotal(kernelTable)
	}
	return nil
}

func errTotal(table string) error {
	return fmt.Errorf("the sum of the times in %s overflows 64 bits: %w", table, ErrDamaged)
}

// readWork appends the rows of one table of executions.
func (w *workReader) readWork(ctx context.Context, conn *sqlite.Conn, table string, which rows.Stretch, to *[]Kernel) error {
	if !w.db.has(table, "start", "end") {
		return nil
	}
	name := "demangledName"
	if !w.db.has(table, name) {
		name = "shortName"
	}
	columns := []string{"start", "end", "correlationId", "globalPid", name, "deviceId", "graphNodeId", "streamId"}
	return w.db.stream(ctx, conn, rows.Query{Table: table, Integers: columns, Rows: which}, func(row *rows.Row) error {
		k := Kernel{Start: row.Int(0), End: row.Int(1), Launch: -1}
		if !w.trouble.believable(k.Start, k.End) {
			return nil
		}
		k.Correlation = nullable(row, 2)
		k.Name = w.names.of(row.Int(4))
		k.Device = w.unit(row, 3, 5)
		k.GraphNode = w.replay(row.Int(6))
		w.end = max(w.end, k.End)
		if w.total += uint64(k.End - k.Start); w.total > math.MaxInt64 {
			return errTotal(table)
		}
		if table == kernelTable {
			w.streams.of(Stream{k.Device, row.Int(7)})
		}
		*to = append(*to, k)
		return nil
	})
}

// adoptStrays gives the kernels without a process (NULL, read as 0) to the only
// process there is. With several they stay a rank of their own: whose they are is
// not known.
func (w *workReader) adoptStrays() {
	none, ok := w.processes.index[0]
	if ok && len(w.processes.values) == 1 {
		w.trouble.NoPIDs = true // the column is there, and nothing in it
	}
	if !ok || w.trouble.NoPIDs {
		return
	}
	stray := func(u int32) bool { return w.units.values[u].Process == none }
	if len(w.processes.values) > 2 {
		for _, k := range w.kernels {
			if stray(k.Device) {
				w.trouble.NoPID++
			}
		}
		return
	}
	adopted := func(u int32) int32 { return w.units.of(Device{1 - none, w.units.values[u].Ordinal}) }
	for i := range w.kernels {
		if k := &w.kernels[i]; stray(k.Device) {
			k.Device = adopted(k.Device)
			w.trouble.Adopted++
		}
	}
	for _, s := range w.streams.values {
		if stray(s.Device) {
			w.streams.of(Stream{adopted(s.Device), s.ID})
		}
	}
}

// replay keeps the graph node of a replayed kernel; 0 (and NULL) is none.
func (w *workReader) replay(node int64) int32 {
	if node == 0 {
		return 0
	}
	w.replayed = append(w.replayed, node)
	return int32(len(w.replayed))
}

func (w *workReader) readGraphs(ctx context.Context, conn *sqlite.Conn) error {
	if !w.db.has(graphTable, "start", "end") {
		return nil
	}
	columns := []string{"start", "end", "correlationId", "globalPid", "deviceId", "graphId"}
	return w.db.stream(ctx, conn, rows.Query{Table: graphTable, Integers: columns, Rows: rows.All}, func(row *rows.Row) error {
		g := GraphLaunch{Start: row.Int(0), End: row.Int(1), Launch: -1}
		if !w.trouble.believable(g.Start, g.End) {
			return nil
		}
		g.Correlation = nullable(row, 2)
		g.Device = w.unit(row, 3, 4)
		g.Graph = row.Int(5)
		w.end = max(w.end, g.End)
		w.runs = append(w.runs, g)
		return nil
	})
}

func (w *workReader) readNodes(ctx context.Context, conn *sqlite.Conn) error {
	if !w.db.has(nodeTable, "start", "globalTid", "graphNodeId") {
		return nil
	}
	columns := []string{"start", "globalTid", "graphNodeId", "originalGraphNodeId"}
	return w.db.stream(ctx, conn, rows.Query{Table: nodeTable, Integers: columns, Rows: rows.All}, func(row *rows.Row) error {
		n := GraphNode{Created: row.Int(0), ID: row.Int(2), Origin: row.Int(3)}
		if n.Created < -TimeLimit || n.Created > TimeLimit {
			w.trouble.OutOfRange++
			return nil
		}
		tid := row.Int(1)
		n.Thread, n.Process = w.threads.of(tid), w.processes.of(tid&processMask)
		w.nodes = append(w.nodes, n)
		return nil
	})
}

// notRecorded is the correlation id of an event that has none.
const noCorrelation = math.MinInt64

// nullable is the value of a column, notRecorded where it is NULL.
func nullable(row *rows.Row, col int) int64 {
	if row.Null(col) {
		return noCorrelation
	}
	return row.Int(col)
}

// unit numbers the process and device in two columns. A device beyond 32 bits is
// none that exists.
func (w *workReader) unit(row *rows.Row, process, device int) int32 {
	return w.units.of(Device{
		Process: w.processes.of(row.Int(process)),
		Ordinal: int32(min(max(row.Int(device), -1), math.MaxInt32)),
	})
}
