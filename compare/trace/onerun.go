package trace

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router/input"
)

// ErrNotOneRun is the error of exports that cannot be ranks of one run.
var ErrNotOneRun = errors.New("the exports are not of one run")

// oneArm refuses exports of both arms.
func (r *reduction) oneArm() error {
	first := map[string]string{}
	for _, d := range r.exports {
		first[d.Arm] = cmp.Or(first[d.Arm], d.Export.Path+" ("+d.ArmEvidence+")")
	}
	if normal, perfect := first["normal"], first["perfect"]; normal != "" && perfect != "" {
		return &input.Error{File: normal + " and " + perfect, Expected: "exports of one arm",
			Found: "one of the normal and one of the perfect arm",
			Try:   "'moebalance compare' takes both arms, also as a folder that holds both", Err: ErrNotOneRun}
	}
	return nil
}

// oneModel refuses ranks whose gates choose among different numbers of experts.
func (r *reduction) oneModel() error {
	first := r.ranks[0]
	own := GateExperts(slices.Values(first.of.Names))
	for _, p := range r.ranks[1:] {
		other := GateExperts(slices.Values(p.of.Names))
		if len(own) == 0 || len(other) == 0 ||
			slices.ContainsFunc(own, func(n int) bool { return slices.Contains(other, n) }) {
			continue
		}
		return &input.Error{File: first.Rank.Export + " and " + p.Rank.Export, Expected: "ranks that run one model",
			Found: fmt.Sprintf("rank %d with a gate of %d experts and rank %d with one of %d", first.Rank.Rank, own[0],
				p.Rank.Rank, other[0]),
			Try: "pass the exports of one run", Err: ErrNotOneRun}
	}
	return nil
}

// GateExperts are the numbers of experts that the gates among kernels are compiled for, ascending:
// several where one model drafts for another, none where no name tells.
func GateExperts(names iter.Seq[string]) (numbers []int) {
	for name := range names {
		if experts, ok := kernel.GateExperts(name); ok {
			numbers = append(numbers, experts)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// Names are the names of all kernels.
func (t *Trace) Names(yield func(string) bool) {
	for i := range t.Kernels {
		if !yield(t.Kernels[i].Name) {
			return
		}
	}
}

// ErrSameRank is the error of exports that are of one rank, which a number given by
// hand can tell apart. It wraps ErrRank.
var ErrSameRank = fmt.Errorf("%w", ErrRank)

// checkRanks refuses one capture given as two ranks, which would be in perfect balance, and
// two ranks of the same number: their times would be added.
func (r *reduction) checkRanks() error {
	sameTime := func(a, b event) bool { return a.Start == b.Start && a.NS == b.NS }
	for i, p := range r.ranks {
		for _, o := range r.ranks[:i] {
			a, b := o.Rank, p.Rank
			copied := p.of != o.of && len(p.events) > 0 && slices.EqualFunc(p.events, o.events, sameTime)
			if !copied && a.Rank != b.Rank {
				continue
			}
			e := &input.Error{File: o.of.Export.Path + " and " + p.of.Export.Path,
				Expected: "exports of one run, one per rank",
				Try:      "give the exports of one run only, or the JSON of 'moebalance trace --rank FILE=N -o FILE.json'"}
			e.Found, e.Err = fmt.Sprintf("two that claim rank %d (by %s and by %s)", a.Rank, a.Evidence, b.Evidence),
				ErrSameRank
			if copied {
				e.Found, e.Err = "one capture twice: all kernels of both run at the same times", ErrNotOneRun
			}
			return e
		}
	}
	return nil
}
