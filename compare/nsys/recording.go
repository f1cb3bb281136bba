package nsys

// recording is one capture as plain events, whatever program and file format
// they came from: the boundary between reading and analysing. A source fills
// one in; analysis sees nothing else of the file.
//
// Times are nanoseconds since the capture's own zero, within ±timeLimit. The
// int32 fields index the tables of the same recording; −1 means not recorded.
type recording struct {
	names     []string // kernels' and ranges', each once
	processes []int64  // global process ids
	threads   []thread
	units     []unit
	streams   []stream
	domains   []string // of ranges; domains[0] is the default one; "" without a name
	kernels   []kernel
	replayed  []int64  // graph nodes of the kernels that a graph replayed
	moves     []kernel // copies and fills, read for statistics only
	calls     []call   // only those that launched a kernel or a graph
	ranges    []span
	nodes     []node     // graph nodes' creations and clones, by id within a process
	graphs    []graphRun // whole graphs, where the capture hid their kernels

	launches  int64 // rows of the table of API calls, with or without a kernel
	end       int64 // the capture's last time, at which open ranges close
	rangesEnd int64 // the last time at which a range begins or ends
	trouble   trouble
}

// timeLimit bounds believable times: 2^53 ns are 104 days, and a sum of 1024
// such durations still fits 64 bits.
const timeLimit = int64(1) << 53

// thread is one thread of one process.
type thread struct {
	id      int64 // serialized global thread id
	process int32
	gpu     bool // a stream, onto which the profiler projected ranges
}

// unit is one device of one process: what a rank can be at the least.
type unit struct {
	process int32
	device  int32
}

func (u unit) bits() uint64 { return uint64(u.process)<<32 | uint64(uint32(u.device)) }

// stream is one on which a unit ran kernels.
type stream struct {
	unit int32
	id   int64
}

func (s stream) bits() uint64 { return uint64(s.unit)<<32 ^ uint64(s.id) }

// kernel is one execution on the GPU. There may be millions: its 40 bytes decide
// how much memory an export takes.
type kernel struct {
	start, end int64
	correlate  int64 // correlation id, unique within a process at best
	name       int32
	unit       int32
	call       int32 // the call that launched it
	replay     int32 // position in recording.replayed plus 1, 0 outside graphs
}

// call is one API call on a thread.
type call struct {
	start, end int64
	thread     int32
}

// launched reports whether the call that launched a kernel is recorded.
func (r *recording) launched(k *kernel) bool {
	return k.call >= 0 && !r.threads[r.calls[k.call].thread].gpu
}

// span is one named range on the thread that began it.
type span struct {
	start, end int64
	thread     int32
	name       int32
	domain     int32
	style      style
	nameless   bool // neither text nor a registered string, which is not the empty text
}

// style is how a range was made.
type style uint8

const (
	pushPop style = iota
	startEnd
	crossThread // started on one thread and ended on another
)

// node is the birth of a graph node: created while a stream was captured, or
// cloned from origin when the graph was instantiated.
type node struct {
	id, origin int64 // origin is 0 for a node that is not a clone
	at         int64
	thread     int32
	process    int32
}

// graphRun is one launch of a whole graph, seen from outside.
type graphRun struct {
	start, end int64
	correlate  int64
	graph      int64
	unit       int32
	call       int32
}

// interner numbers strings by first sight. index finds a known one without
// allocating.
type interner struct {
	index map[string]int32
	names []string
}

func newInterner() *interner { return &interner{index: map[string]int32{}} }

func (n *interner) bytes(b []byte) int32 {
	if i, ok := n.index[string(b)]; ok {
		return i
	}
	return n.add(string(b))
}

func (n *interner) add(s string) int32 {
	if i, ok := n.index[s]; ok {
		return i
	}
	i := int32(len(n.names))
	n.index[s] = i
	n.names = append(n.names, s)
	return i
}

// numbering gives the values of a column small numbers by first sight. The
// column repeats a few values in any order, so that a look into recent finds
// most of them without the map.
type numbering[T comparable] struct {
	index  map[T]int32
	values []T
	slot   func(T) uint64 // spreads values over recent; nil keeps the last one only
	recent [1 << recentBits]numbered[T]
}

const recentBits = 6

// numbered is a value and its number plus 1, 0 for none.
type numbered[T comparable] struct {
	value T
	next  int32
}

func newNumbering[T comparable]() *numbering[T] {
	return &numbering[T]{index: map[T]int32{}}
}

// newSpread is a numbering that tells recent values apart by the given bits.
func newSpread[T comparable](bits func(T) uint64) *numbering[T] {
	n := newNumbering[T]()
	n.slot = bits
	return n
}

// newIDs numbers the ids of one kind.
func newIDs() *numbering[int64] { return newSpread(func(id int64) uint64 { return uint64(id) }) }

func (n *numbering[T]) of(v T) int32 {
	at := uint64(0)
	if n.slot != nil {
		const spread = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio
		at = n.slot(v) * spread >> (64 - recentBits)
	}
	r := &n.recent[at]
	if r.next > 0 && r.value == v {
		return r.next - 1
	}
	i, ok := n.index[v]
	if !ok {
		i = int32(len(n.values))
		n.index[v] = i
		n.values = append(n.values, v)
	}
	r.value, r.next = v, i+1
	return i
}
