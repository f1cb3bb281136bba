package wait

import (
	"github.com/moebalance/moebalance/router"
)

// Part is one part of a Wait by its name for people, with its interval.
type Part struct {
	Name, Key string // Key is that of JSON
	NS        router.Number
	Interval  Interval
}

// The names of parts, which are also those of causes.
const (
	ExpertLoad   = "expert load"
	OtherCompute = "other compute"
	OtherKernels = "different kernels"
	LateHosts    = "late launches"
	unexplained  = "not explained"
)

// List is the parts in the order in which tables show them; together they are WaitNS.
func (w Wait) List() []Part {
	return []Part{
		{ExpertLoad, "expert_ns", w.Parts.ExpertNS, w.Intervals.Expert},
		{OtherCompute, "other_compute_ns", w.Parts.OtherNS, w.Intervals.Other},
		{OtherKernels, "kernels_ns", w.Parts.KernelsNS, w.Intervals.Kernels},
		{LateHosts, "host_ns", w.Parts.HostNS, w.Intervals.Host},
		{unexplained, "unexplained_ns", w.Parts.UnexplainedNS, w.Intervals.Unexplained},
	}
}

// All is the whole, and then its parts.
func (w Wait) All() []Part {
	return append([]Part{{"wait", "mean_wait_ns", w.WaitNS, w.Intervals.Wait}}, w.List()...)
}
