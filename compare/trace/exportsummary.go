package trace

import (
	"iter"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
)

// exportSummary is everything later questions need of one export: what it says
// about itself and, per rank, a table of its kernels with their locations. It is what a summary
// file holds, so a result from summaries is computed by the same code from the same
// values as one from the exports.
type exportSummary struct {
	Export      Export                  `json:"export"`
	Arm         string                  `json:"arm"` // normal, perfect or empty
	ArmEvidence string                  `json:"arm_evidence"`
	World       int                     `json:"world"` // ranks of the run where the environment says, else 0
	Names       []string                `json:"names"`
	Classes     []kernel.Class          `json:"classes"` // of Names
	Places      capture.Index[location] `json:"places"`
	Ranks       []*rankEvents           `json:"ranks"`
	StepNames   map[int32]string        `json:"step_names,omitempty"` // the names of the ranges of steps

	common []int32 // the numbers of Names among the names of all exports
}

// rankEvents is what one rank did.
type rankEvents struct {
	Rank   Rank   `json:"rank"`
	Hidden Hidden `json:"hidden"`

	of        *exportSummary
	device    capture.Device
	events    []event    // in the order of time
	rows      []row      // see tabulate
	structure *Structure // nil where ranges name all, see infer
	streams   []uint16   // of microbatches side by side, see steps.SideBySide
}

// event is one kernel. Place and Name index the export's tables.
type event struct {
	Start, NS     int64
	Place, Name   int32
	Queued        int32 // ns from the begin of its launch to its start, −1 where not recorded
	Waited, Since int32 // ns that the host waited before its launch, and from then to the launch; 0 if it did not
	Stream        uint16
	Replayed      bool  // by a graph, whose kernels share one launch
	Late          uint8 // what the host did while the GPU was free, see inTime
}

// end is when the kernel ended.
func (e *event) end() int64 { return e.Start + e.NS }

// launched is when the kernel was launched, as far as that is recorded.
func (e *event) launched() int64 { return e.Start - max(0, int64(e.Queued)) }

// each visits the kernels of a rank in the order of time, with their locations.
func (p *rankEvents) each() iter.Seq2[*event, *location] {
	return func(yield func(*event, *location) bool) {
		for i := range p.events {
			if !yield(&p.events[i], p.place(&p.events[i])) {
				return
			}
		}
	}
}

// place is the location of one of the rank's kernels.
func (p *rankEvents) place(e *event) *location { return &p.of.Places.Values[e.Place] }

// class is what the name of one of the rank's kernels says.
func (p *rankEvents) class(e *event) *kernel.Class { return &p.of.Classes[e.Name] }

// relocate changes the locations of all kernels.
func (r *reduction) relocate(change func(*location)) {
	for _, d := range r.exports {
		for i := range d.Places.Values {
			change(&d.Places.Values[i])
		}
		d.Places = capture.Index[location]{Values: d.Places.Values}
	}
}
