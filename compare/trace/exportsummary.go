package trace

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/trace/wait"
)

// exportSummary is everything later questions need of one export: what it says
// about itself and, per rank, a table of its kernels with their locations. It is what a summary
// file holds, so a result from summaries is computed by the same code from the same
// values as one from the exports.
type exportSummary struct {
	summaryExport
	classes []kernel.Class // of Names
	rules   []kernel.Rule  // of the user, that the classes and locations follow
	ranks   []*rankEvents
	at      map[location]int32 // numbers of Places, nil before any is asked for
	common  []int32            // the numbers of Names among the names of all exports
}

// summaryExport is what a summary says of an export before its events.
type summaryExport struct {
	Export      Export           `json:"export"`
	Arm         string           `json:"arm"` // normal, perfect or empty
	ArmEvidence string           `json:"arm_evidence"`
	World       int              `json:"world"`          // ranks of the whole run where the environment says, else 0
	Session     int64            `json:"session_utc_ns"` // UTC nanoseconds of the capture's zero; 0 when not recorded
	Names       []string         `json:"names"`
	Places      []location       `json:"places"`
	Ranks       []summaryRank    `json:"ranks"`                 // in a file alone
	Rules       []string         `json:"phase_rules,omitempty"` // in a file alone
	StepNames   map[int32]string `json:"step_names,omitempty"`  // the names of the ranges of steps
}

type summaryRank struct {
	Rank       Rank        `json:"rank"`
	Hidden     Hidden      `json:"hidden"`
	LaunchedNS int64       `json:"launched_ns"` // of kernels whose launch is recorded
	Events     int         `json:"events"`      // in a file alone: their number
	Late       []wait.Late `json:"late,omitempty"`
}

// rankEvents is what one rank did.
type rankEvents struct {
	summaryRank
	of        *exportSummary
	device    capture.Device
	events    []event    // in the order of time
	rows      []row      // see table; nil before it is asked for, and where events change
	Structure *Structure // nil where ranges name all, see infer
}

// event is one kernel. Place and Name index the export's tables. A summary file holds events
// field by field, as they stand here.
type event struct {
	Start, NS     int64
	Place, Name   int32
	Queued        int32 // ns from the begin of its launch to its start, −1 where not recorded
	Waited, Since int32 // ns that the host waited before its launch, and from then to the launch; 0 if it did not
	Replayed      bool  // by a graph, whose kernels share one launch
}

// end is when the kernel ended.
func (e *event) end() int64 { return e.Start + e.NS }

// launched is when the kernel was launched, as far as that is recorded.
func (e *event) launched() int64 { return e.Start - max(0, int64(e.Queued)) }

// place is the location of one of the rank's kernels.
func (p *rankEvents) place(e *event) *location { return &p.of.Places[e.Place] }

// class is what the name of one of the rank's kernels says.
func (p *rankEvents) class(e *event) *kernel.Class { return &p.of.classes[e.Name] }

// number gives a location its number among the export's places, a new one where it has none.
func (d *exportSummary) number(l location) int32 {
	if d.at == nil {
		d.at = make(map[location]int32, len(d.Places))
		for n, l := range d.Places {
			d.at[l] = int32(n)
		}
	}
	n, known := d.at[l]
	if !known {
		n = int32(len(d.Places))
		d.Places, d.at[l] = append(d.Places, l), n
	}
	return n
}

// sort puts the events in the order of time, the same for every way in which they
// were read. They mostly are.
func (p *rankEvents) sort() {
	inTime := func(a, b event) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.NS, b.NS), cmp.Compare(a.Place, b.Place),
			cmp.Compare(a.Name, b.Name))
	}
	if !slices.IsSortedFunc(p.events, inTime) {
		slices.SortFunc(p.events, inTime)
	}
}
