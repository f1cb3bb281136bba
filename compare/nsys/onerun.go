package nsys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/compare/nsys/export"
	"github.com/moebalance/moebalance/compare/nsys/onemodel"
	"github.com/moebalance/moebalance/compare/nsys/ranges"
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
	if normal, perfect := first[capture.Normal], first[capture.Perfect]; normal != "" && perfect != "" {
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

// ReadArm is the arm of a file by its environment: the Arm that Read would give its
// Trace. It reads no event.
func ReadArm(ctx context.Context, path string, o Options) (arm string, err error) {
	if IsSummary(path) {
		return summaryArm(path)
	}
	p, err := capture.ReadMetadata(ctx, path, capture.Options{Converter: o.Converter})
	if err != nil {
		return "", err
	}
	arm, _ = p.Arm()
	return arm, nil
}

func summaryArm(path string) (arm string, err error) {
	err = inSummary(path, func(r io.Reader) error {
		head, _, err := summaryHead(r)
		if len(head.Exports) > 0 {
			arm = head.Exports[0].Arm
		}
		if slices.ContainsFunc(head.Exports, func(e summaryExport) bool { return e.Arm != arm }) {
			arm = "" // some do not say
		}
		return err
	})
	return arm, err
}

// arm is the arm of all exports; unknown where some of them do not say. oneArm has
// refused those of both.
func (r *reduction) arm() {
	first := r.exports[0]
	r.trace.Arm, r.trace.ArmEvidence = first.Arm, first.ArmEvidence
	said := 0
	for _, d := range r.exports {
		if d.Arm != "" {
			said++
		}
		if d.ArmEvidence != first.ArmEvidence {
			r.trace.ArmEvidence = "the environment recorded in each export"
		}
	}
	if said < len(r.exports) && said > 0 {
		r.trace.Arm, r.trace.ArmEvidence = "", fmt.Sprintf("only %d of %d exports record the arm", said, len(r.exports))
	}
}

// ErrArm is the error of captures in which no range names the arm that is asked for.
var ErrArm = errors.New("no step of the arm")

// OtherArms is the code of the warning that the captures hold steps of other arms too.
const OtherArms = "other_arms"

// hookEvidence is the evidence of an arm that ranges name.
const hookEvidence = "the hook's ranges of steps"

// selectArm keeps the steps of one arm where the hook's ranges name arms: the one asked
// for, else the normal arm, else the first. A step of which ranks name different arms, or
// whose order lapsed, is of none. Where no range names an arm, and none is asked for, all
// steps stay.
func (r *reduction) selectArm() error {
	armOf, arms := map[int32]string{}, []string{}
	for _, step := range r.recordedSteps() {
		armOf[step] = r.armOfStep(step)
		if arm := armOf[step]; arm != "" && !slices.Contains(arms, arm) {
			arms = append(arms, arm)
		}
	}
	want := cmp.Or(r.options.Arm, capture.Normal)
	if !slices.Contains(arms, want) {
		switch {
		case r.options.Arm != "":
			found := "no range that names one (moebalance step=… arm=…)"
			if len(arms) > 0 {
				found = "steps of " + strings.Join(arms, ", ")
			}
			return &input.Error{File: r.exports[0].Export.Path, Expected: "steps of the arm " + want, Found: found,
				Try: "give the captures of each arm", Err: ErrArm}
		case len(arms) == 0:
			return nil
		}
		want = arms[0]
	}
	r.keep(func(step int32) bool { return armOf[step] == want })
	r.trace.Arm, r.trace.ArmEvidence = want, hookEvidence
	others := slices.DeleteFunc(arms, func(arm string) bool { return arm == want })
	if r.options.Arm == "" && len(others) > 0 {
		r.warn(OtherArms, "", "arm", want, "others", others)
	}
	return nil
}

// armOfStep is the arm that the ranges of all ranks name for a step.
func (r *reduction) armOfStep(step int32) (arm string) {
	for i, p := range r.ranks {
		own := ranges.BatchOf(p.of.StepNames[step]).Arm
		if i > 0 && own != arm {
			return ""
		}
		arm = own
	}
	return arm
}
