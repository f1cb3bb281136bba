package capture

// Recording is one capture as plain events, whatever program and file format
// they came from: the boundary between reading and analyzing. A source fills
// one in; analysis sees nothing else of the file.
//
// Times are nanoseconds since the capture's own zero, within ±TimeLimit. The
// int32 fields index the tables of the same recording; −1 means not recorded.
type Recording struct {
	Metadata     Metadata
	KernelNames  []string // demangled where the source has them so
	RangeNames   []string
	Operators    []string // of launches; the first is "", for none known
	Processes    []int64  // global process ids
	Threads      []int32  // the process of each
	Devices      []Device
	Kernels      []Kernel
	GraphNodeIDs []int64 // graph nodes of the kernels that a graph replayed
	Launches     []Call  // only those that launched a kernel or a graph
	Waits        []Call  // that return when the GPU has done what they ask for
	Ranges       []Range
	GraphNodes   []GraphNode   // graph nodes' creations and clones, by id within a process
	Graphs       []GraphLaunch // whole graphs, where the capture hid their kernels

	APICalls      int64 // rows of the table of API calls, with or without a kernel
	GraphLaunches int64 // of them, those that launched a CUDA graph
	// LostKernels are the successful calls that launched a kernel, outside the capture
	// of a graph, whose kernel is not recorded.
	LostKernels int64
	BadTimes    int64 // events left out: they end before they begin, or lie beyond TimeLimit
}

// TimeLimit bounds believable times: 2^53 ns are 104 days, and a sum of 1024
// such durations still fits 64 bits.
const TimeLimit = int64(1) << 53

// Device is one device of one process: what a rank can be at the least.
type Device struct {
	Process int32
	Ordinal int32
}

// Kernel is one execution on the GPU. There may be millions: its 40 bytes decide
// how much memory an export takes.
//
// Kernels come in the order of the source. They were launched in the order of their launches'
// starts; kernels of one launch, a replayed graph, in the order of Start.
type Kernel struct {
	Start, End int64
	Name       int32 // among KernelNames
	Device     int32
	Launch     int32  // the call that launched it
	GraphNode  int32  // position in GraphNodeIDs plus 1, 0 outside graphs
	Stream     uint16 // as the device numbers it, its last 16 bits
}

// Call is one API call on a thread, and of a launch the operator of the framework that made it.
type Call struct {
	Start, End int64
	Thread     int32
	Operator   int32 // among Operators, 0 where not recorded
}

// Range is one named range on the thread that began it.
type Range struct {
	Start, End int64
	Thread     int32
	Name       int32 // among RangeNames
}

// GraphNode is the creation of a graph node, while a stream was captured, or
// cloned from origin when the graph was instantiated.
type GraphNode struct {
	ID, Origin int64 // origin is 0 for a node that is not a clone
	Created    int64
	Thread     int32
	Process    int32
}

// GraphLaunch is one launch of a whole graph, seen from outside.
type GraphLaunch struct {
	Start, End  int64
	Correlation uint32
	Device      int32
}
