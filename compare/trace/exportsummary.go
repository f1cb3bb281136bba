package trace

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
)

// exportSummary is everything later questions need of one export: what it says
// about itself and, per rank, every kernel with its location. It is what a summary
// file holds, so a result from summaries is computed by the same code from the same
// values as one from the exports.
type exportSummary struct {
	summaryExport
	classes []kernel.Class // of Names
	rules   []kernel.Rule  // of the user, that the classes and locations follow
	ranks   []*rankEvents
}

// rankEvents is what one rank did.
type rankEvents struct {
	summaryRank
	of        *exportSummary
	device    capture.Device
	events    []kernelEvent // in the order of time
	rows      []row         // see table; nil before it is asked for, and where events change
	Structure *Structure    // nil where ranges name all, see infer
	kernels   []int32       // positions of events among the recording's kernels, until they are placed
}

// kernelEvent is one kernel; location and name index the export's tables.
type kernelEvent struct {
	start, duration int64
	location, name  int32
	queued          int32 // ns from the begin of its launch to its start, −1 where not recorded
	waited, since   int32 // ns that the host waited before its launch, and from then to the launch; 0 if it did not
	replayed        bool  // by a graph, whose kernels share one launch
}

// graphEvent is one launch of a graph whose kernels the capture hid.
type graphEvent struct {
	Graph int64 `json:"graph"`
	Step  int32 `json:"step"`
	Start int64 `json:"start"`
	NS    int64 `json:"ns"`
}

// sort puts the events in the order of time, the same for every way in which they
// were read. They mostly are.
func (p *rankEvents) sort() {
	inTime := func(a, b kernelEvent) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.duration, b.duration),
			cmp.Compare(a.location, b.location), cmp.Compare(a.name, b.name))
	}
	if !slices.IsSortedFunc(p.events, inTime) {
		slices.SortFunc(p.events, inTime)
	}
}
