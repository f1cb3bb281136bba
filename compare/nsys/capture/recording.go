package capture

// recording is one capture as plain events, whatever program and file format
// they came from: the boundary between reading and analysing. A source fills
// one in; analysis sees nothing else of the file.
//
// Times are nanoseconds since the capture's own zero, within ±timeLimit. The
// int32 fields index the tables of the same recording; −1 means not recorded.
type Recording struct {
	Names        []string // kernels' and ranges', each once
	Processes    []int64  // global process ids
	Threads      []Thread
	Devices      []Device
	Streams      []Stream
	Domains      []string // of ranges; domains[0] is the default one; "" without a name
	Kernels      []Kernel
	GraphNodeIDs []int64  // graph nodes of the kernels that a graph replayed
	MemoryOps    []Kernel // copies and fills, read for statistics only
	Launches     []Launch // only those that launched a kernel or a graph
	Ranges       []Range
	GraphNodes   []GraphNode   // graph nodes' creations and clones, by id within a process
	Graphs       []GraphLaunch // whole graphs, where the capture hid their kernels

	APICalls  int64 // rows of the table of API calls, with or without a kernel
	End       int64 // the capture's last time, at which open ranges close
	RangesEnd int64 // the last time at which a range begins or ends
	Issues    Issues
	Metadata  Metadata
	noKernels error
}

// timeLimit bounds believable times: 2^53 ns are 104 days, and a sum of 1024
// such durations still fits 64 bits.
const TimeLimit = int64(1) << 53

// thread is one thread of one process.
type Thread struct {
	ID      int64 // serialized global thread id
	Process int32
	GPU     bool // a stream, onto which the profiler projected ranges
}

// unit is one device of one process: what a rank can be at the least.
type Device struct {
	Process int32
	Ordinal int32
}

func (u Device) bits() uint64 { return uint64(u.Process)<<32 | uint64(uint32(u.Ordinal)) }

// stream is one on which a unit ran kernels.
type Stream struct {
	Device int32
	ID     int64
}

func (s Stream) bits() uint64 { return uint64(s.Device)<<32 ^ uint64(s.ID) }

// kernel is one execution on the GPU. There may be millions: its 40 bytes decide
// how much memory an export takes.
type Kernel struct {
	Start, End  int64
	Correlation int64 // correlation id, unique within a process at best
	Name        int32
	Device      int32
	Launch      int32 // the call that launched it
	GraphNode   int32 // position in recording.replayed plus 1, 0 outside graphs
}

// call is one API call on a thread.
type Launch struct {
	Start, End int64
	Thread     int32
}

// launched reports whether the call that launched a kernel is recorded.
func (r *Recording) Launched(k *Kernel) bool {
	return k.Launch >= 0 && !r.Threads[r.Launches[k.Launch].Thread].GPU
}

// span is one named range on the thread that began it.
type Range struct {
	Start, End int64
	Thread     int32
	Name       int32
	Domain     int32
	Style      Style
	Unnamed    bool // neither text nor a registered string, which is not the empty text
}

// style is how a range was made.
type Style uint8

const (
	PushPop Style = iota
	StartEnd
	CrossThread // started on one thread and ended on another
)

// node is the birth of a graph node: created while a stream was captured, or
// cloned from origin when the graph was instantiated.
type GraphNode struct {
	ID, Origin int64 // origin is 0 for a node that is not a clone
	Created    int64
	Thread     int32
	Process    int32
}

// graphRun is one launch of a whole graph, seen from outside.
type GraphLaunch struct {
	Start, End  int64
	Correlation int64
	Graph       int64
	Device      int32
	Launch      int32
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
