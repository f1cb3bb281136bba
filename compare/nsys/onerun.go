package nsys

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/export"
	"github.com/moebalance/moebalance/compare/nsys/onemodel"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// ErrNotOneRun is the error of exports that cannot be ranks of one run.
var ErrNotOneRun = errors.New("the exports are not of one run")

// mostSkew is by how many nanoseconds the clocks of two hosts of one run can disagree at
// most: one that runs on local time is up to 14 hours off.
const mostSkew = int64(24 * 3600e9)

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

// oneModel refuses ranks whose gates choose among different numbers of experts, and ranks
// that run almost no kernel in common.
func (r *reduction) oneModel() error {
	first := r.ranks[0]
	own := first.used()
	for _, p := range r.ranks[1:] {
		found, other := "", p.used()
		if a, b := onemodel.Gates(own, other); a != b {
			found = fmt.Sprintf("rank %d with a gate of %d experts and rank %d with one of %d", first.Rank.Rank, a,
				p.Rank.Rank, b)
		} else if p.of != first.of {
			if share, few := onemodel.Shared(own, other); few {
				found = fmt.Sprintf("ranks %d and %d, of which one has %s of its compute time in kernels that the other runs",
					first.Rank.Rank, p.Rank.Rank, quantity.Percent(share))
			}
		}
		if found != "" {
			return &input.Error{File: first.Rank.Export + " and " + p.Rank.Export, Expected: "ranks that run one model",
				Found: found,
				Try:   "pass the exports of one run", Err: ErrNotOneRun}
		}
	}
	return nil
}

// used are the kernels that the rank ran.
func (p *rankEvents) used() onemodel.Kernels {
	k := onemodel.Kernels{Names: p.of.Names, Classes: p.of.classes, NS: make([]int64, len(p.of.Names))}
	for i := range p.events {
		k.NS[p.events[i].name] += p.events[i].duration
	}
	return k
}

// otherModel warns of ranks that do the same work by other libraries than the first, or
// work that it does not have.
func (r *reduction) otherModel() {
	first := r.ranks[0]
	own := first.used()
	for _, p := range r.ranks[1:] {
		other, a, b := p.used(), p, first
		names := onemodel.Alone(other, own)
		if len(names) == 0 {
			names, a, b = onemodel.Alone(own, other), first, p
		}
		if len(names) > 0 {
			r.warn("different_runs", "", "why", "models", "rank", a.Rank.Rank, "libraries", names, "other", b.Rank.Rank)
			return
		}
	}
}

// ErrSameRank is the error of exports that are of one rank, which a number given by
// hand can tell apart. It wraps export.ErrRank.
var ErrSameRank = fmt.Errorf("%w", export.ErrRank)

// checkRanks refuses one capture given as two ranks, which would be in perfect balance, and
// two ranks of the same number: their times would be added.
func (r *reduction) checkRanks() error {
	sameTime := func(a, b kernelEvent) bool { return a.start == b.start && a.duration == b.duration }
	for i, p := range r.ranks {
		for _, o := range r.ranks[:i] {
			a, b := o.Rank, p.Rank
			copied := p.of != o.of && len(p.events) > 0 && slices.EqualFunc(p.events, o.events, sameTime)
			if !copied && a.Rank != b.Rank {
				continue
			}
			e := &input.Error{File: o.of.Export.Path + " and " + p.of.Export.Path,
				Expected: "exports of one run, one per rank"}
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
