package capture

import (
	"context"
	"math"
	"strings"

	"github.com/moebalance/moebalance/compare/capture/rows"
	"github.com/moebalance/moebalance/router/input"
)

// activityReader reads what ran on the GPU: kernels, whole graphs and, for
// statistics, copies and fills; and the creations of graph nodes.
type activityReader struct {
	db           *database
	strings      *stringLookup
	ids          *denseIDs[int64] // of names, in StringIds
	names        []string         // by number in ids
	processes    *denseIDs[int64]
	correlations shortIDs
	devices      *denseIDs[Device]
	streams      *denseIDs[Stream] // of kernels
	threads      *denseIDs[int64]  // of graph nodes' creations
	nodeIDs      []int64           // of the kernels that a graph replayed
	kernels      []Kernel          // with their short correlation id in place of the launch
	space        []Kernel          // for the kernels of both halves
	graphs       []GraphLaunch
	nodes        []GraphNode
	end          int64
	total        uint64 // ns
	issues       Issues
	noPIDs       bool // no process beside any correlation id
}

func newActivityReader(db *database, strings *stringLookup) *activityReader {
	return &activityReader{
		db: db, strings: strings, ids: newIDs(), processes: newIDs(), correlations: shortIDs{newIDs()},
		devices: newDenseIDs(Device.bits),
		streams: newDenseIDs(Stream.bits), threads: newIDs(), issues: Issues{},
	}
}

// read reads everything but the second half of the kernels.
func (a *activityReader) read(ctx context.Context) error {
	a.noPIDs = a.db.has(kernelTable) && !a.db.has(kernelTable, "globalPid")
	left, _ := rows.Halves(a.db.lastRow[kernelTable])
	if err := a.readWork(ctx, kernelTable, left, &a.kernels); err != nil {
		return err
	}
	if err := a.readGraphs(ctx); err != nil {
		return err
	}
	return a.readNodes(ctx)
}

// readRest reads the second half of the kernels.
func (a *activityReader) readRest(ctx context.Context) error {
	_, right := rows.Halves(a.db.lastRow[kernelTable])
	return a.readWork(ctx, kernelTable, right, &a.kernels)
}

// share gives the readers of two halves one piece of memory for their kernels.
func (a *activityReader) share(rest *activityReader) {
	n := a.db.room(kernelTable)
	a.space = make([]Kernel, n)
	a.kernels, rest.kernels = a.space[:0:n/2], a.space[n/2:n/2]
}

// join appends what readRest found, with the same numbers as one reader of all
// would have given.
func (a *activityReader) join(rest *activityReader) error {
	names, devices := make([]int32, len(rest.names)), make([]int32, len(rest.devices.values))
	for i, id := range rest.ids.values {
		if names[i] = a.ids.of(id); int(names[i]) == len(a.names) {
			a.names = append(a.names, rest.names[i])
		}
	}
	for i, d := range rest.devices.values {
		devices[i] = a.devices.of(Device{a.processes.of(rest.processes.values[d.Process]), d.Ordinal})
	}
	for _, s := range rest.streams.values {
		a.streams.of(Stream{devices[s.Device], s.ID})
	}
	for i := range rest.kernels {
		k := &rest.kernels[i]
		k.Name, k.Device = names[k.Name], devices[k.Device]
		if k.Launch < 0 {
			k.Launch = a.correlations.short(rest.correlations.id(k.Launch))
		}
		if k.GraphNode > 0 {
			k.GraphNode += int32(len(a.nodeIDs))
		}
	}
	if len(a.kernels) <= len(a.space)/2 { // they are still where share put them
		a.kernels = a.space[:len(a.kernels)]
	}
	a.kernels = append(a.kernels, rest.kernels...)
	a.nodeIDs = append(a.nodeIDs, rest.nodeIDs...)
	a.end = max(a.end, rest.end)
	a.issues.add(rest.issues)
	if a.total += rest.total; a.total > math.MaxInt64 {
		return a.overflow(kernelTable)
	}
	return nil
}

func (a *activityReader) overflow(table string) error {
	return &input.Error{File: a.db.path, Position: "table " + table, Expected: "a sum of durations within 64 bits",
		Found: "more", Try: exportAgain, Err: ErrDamaged}
}

// readWork appends the rows of one table of executions.
func (a *activityReader) readWork(ctx context.Context, table string, which rows.RowRange, to *[]Kernel) error {
	if !a.db.has(table, "start", "end") {
		return nil
	}
	name := "demangledName"
	if !a.db.has(table, name) {
		name = "shortName"
	}
	columns := []string{"start", "end", "correlationId", "globalPid", name, "deviceId", "graphNodeId", "streamId"}
	return a.db.stream(ctx, rows.Query{Table: table, Integers: columns, Rows: which}, func(row *rows.Row) (err error) {
		k := Kernel{Start: row.Int(0), End: row.Int(1)}
		if !a.issues.believable(k.Start, k.End) {
			return nil
		}
		k.Launch = a.correlations.short(correlation(row, 2))
		if k.Name = a.ids.of(row.Int(4)); int(k.Name) == len(a.names) {
			text, err := a.strings.find(row.Int(4))
			if err != nil {
				return err
			}
			a.names = append(a.names, demangled(strings.ToValidUTF8(text, "\uFFFD")))
		}
		k.Device = a.device(row, 3, 5)
		k.GraphNode = a.graphNode(row.Int(6))
		a.end = max(a.end, k.End)
		if a.total += uint64(k.End - k.Start); a.total > math.MaxInt64 {
			return a.overflow(table)
		}
		if table == kernelTable {
			a.streams.of(Stream{k.Device, row.Int(7)})
		}
		*to = append(*to, k)
		return nil
	})
}

// adoptOrphans gives the kernels without a process (NULL, read as 0) to the only
// process there is. With several they become a rank of their own: whose they are is
// not known.
func (a *activityReader) adoptOrphans() {
	none, ok := a.processes.index[0]
	if ok && len(a.processes.values) == 1 {
		a.noPIDs = true // the column is there, and nothing in it
	}
	if !ok || a.noPIDs {
		return
	}
	orphan := func(d int32) bool { return a.devices.values[d].Process == none }
	if len(a.processes.values) > 2 {
		for _, k := range a.kernels {
			if orphan(k.Device) {
				a.issues[NoPID]++
			}
		}
		return
	}
	adopted := func(d int32) int32 { return a.devices.of(Device{1 - none, a.devices.values[d].Ordinal}) }
	for i := range a.kernels {
		if k := &a.kernels[i]; orphan(k.Device) {
			k.Device = adopted(k.Device)
			a.issues[Adopted]++
		}
	}
	for _, s := range a.streams.values {
		if orphan(s.Device) {
			a.streams.of(Stream{adopted(s.Device), s.ID})
		}
	}
}

// graphNode keeps the graph node of a replayed kernel; 0 (and NULL) is none.
func (a *activityReader) graphNode(id int64) int32 {
	if id == 0 {
		return 0
	}
	a.nodeIDs = append(a.nodeIDs, id)
	return int32(len(a.nodeIDs))
}

func (a *activityReader) readGraphs(ctx context.Context) error {
	if !a.db.has(graphTable, "start", "end") {
		return nil
	}
	columns := []string{"start", "end", "correlationId", "globalPid", "deviceId", "graphId"}
	return a.db.stream(ctx, rows.Query{Table: graphTable, Integers: columns, Rows: rows.All},
		func(row *rows.Row) error {
			g := GraphLaunch{Start: row.Int(0), End: row.Int(1), Launch: -1}
			if !a.issues.believable(g.Start, g.End) {
				return nil
			}
			g.Correlation = correlation(row, 2)
			g.Device = a.device(row, 3, 4)
			g.Graph = row.Int(5)
			a.end = max(a.end, g.End)
			a.graphs = append(a.graphs, g)
			return nil
		})
}

func (a *activityReader) readNodes(ctx context.Context) error {
	if !a.db.has(nodeTable, "start", "globalTid", "graphNodeId") {
		return nil
	}
	columns := []string{"start", "globalTid", "graphNodeId", "originalGraphNodeId"}
	return a.db.stream(ctx, rows.Query{Table: nodeTable, Integers: columns, Rows: rows.All}, func(row *rows.Row) error {
		n := GraphNode{Created: row.Int(0), ID: row.Int(2), Origin: row.Int(3)}
		if n.Created < -TimeLimit || n.Created > TimeLimit {
			a.issues[OutOfRange]++
			return nil
		}
		tid := row.Int(1)
		n.Thread, n.Process = a.threads.of(tid), a.processes.of(tid&processMask)
		a.nodes = append(a.nodes, n)
		return nil
	})
}

// noCorrelation is the correlation id of an event that has none.
const noCorrelation = math.MinInt64

// correlation is the correlation id in a column, noCorrelation where it is NULL.
func correlation(row *rows.Row, column int) int64 {
	if row.Null(column) {
		return noCorrelation
	}
	return row.Int(column)
}

// device numbers the process and device in two columns. A device beyond 32 bits is
// none that exists.
func (a *activityReader) device(row *rows.Row, process, device int) int32 {
	return a.devices.of(Device{
		Process: a.processes.of(row.Int(process)),
		Ordinal: int32(min(max(row.Int(device), -1), math.MaxInt32)),
	})
}
