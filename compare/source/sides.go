package source

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router/quantity"
)

// Arms are what the arguments of a comparison name: a campaign, or a side for each arm.
type Arms struct {
	Kind  Kind
	Paths []string // of a campaign
	Sides [2]Side
}

// Side is the files of one arm, all of one kind.
type Side struct {
	Input
	// Unsorted says of captures on both sides, which may hold the steps of both arms, why they were
	// not sorted into two sides.
	Unsorted error
}

// ReadArms sorts the arguments of a comparison. Two of them are a side each; more, or what a single
// one holds, are sorted by the arm that files or folders are named after, or that captures
// record. Captures of no arm may hold both.
func ReadArms(args []string, skipped Skipped) (arms Arms, err error) {
	var all []Input
	for i, arg := range args {
		inputs, err := Classify(arg, skipped)
		if err != nil {
			return arms, err
		}
		for _, in := range inputs {
			if len(args) == 2 {
				arms.Sides[i].Paths = append(arms.Sides[i].Paths, in.Paths...)
			}
			arms.Paths = append(arms.Paths, in.Paths...)
		}
		all = append(all, inputs...)
	}
	if arms.Kind = all[0].Kind; arms.Kind == Campaigns && len(all) == 1 {
		return arms, nil
	}
	if err := ofOneKind(all); err != nil {
		return arms, err
	}
	arms.Sides[0].Kind, arms.Sides[1].Kind = arms.Kind, all[len(all)-1].Kind
	if len(args) != 2 {
		if err := arms.sort(all); err != nil {
			return arms, arms.hold(all, err)
		}
	}
	for _, side := range arms.Sides {
		if twice, ok := repeated(side.Paths); ok {
			return arms, usagef("%s is named twice", twice)
		}
	}
	if path, same := repeated(slices.Concat(arms.Sides[1].Paths, arms.Sides[0].Paths)); same && arms.Kind == Reports {
		return arms, marked{fmt.Errorf("%s is on both sides: want launches of the two arms", path), ErrNotComparable}
	}
	return arms, nil
}

// ofOneKind refuses what is no side, and sides of two kinds.
func ofOneKind(all []Input) error {
	for _, in := range all {
		switch path := in.Paths[0]; {
		case in.Kind == Results:
			return judgedAlready(path)
		case in.Kind == Counts || in.Kind == Reports && len(all) == 1 && areCounts(path):
			return usagef("%s holds expert counts: 'moebalance counts' reads them, 'moebalance place' learns a placement from "+
				"them, and trace --counts sets them beside a trace", path)
		case in.Kind == Campaigns:
			return usagef("%s is a result of bench, which holds both arms: %s", path, campaignAlone(path))
		case (in.Kind == Captures) != (all[0].Kind == Captures):
			return usagef("%s and %s are of different kinds: want traces only, or benchmark reports only",
				all[0].Paths[0], path)
		}
	}
	return nil
}

// areCounts reports a file of expert counts.
func areCounts(path string) bool {
	_, err := counts.Read(path)
	return err == nil
}

// sort gives each file to the side of its arm.
func (a *Arms) sort(all []Input) error {
	for _, in := range all {
		for _, path := range in.Paths {
			arm := in.Arm
			if arm == "" && in.Kind == Captures {
				recorded, _ := trace.ReadArm(context.Background(), path, trace.Options{})
				arm = gain.Arm(recorded)
			}
			i := slices.Index(gain.Arms[:], arm)
			if i < 0 {
				return usagef("the name of %q contains neither normal nor perfect, and it records no arm: give two sides, with "+
					"patterns in quotes or commas between files", path)
			}
			a.Sides[i].Paths = append(a.Sides[i].Paths, path)
		}
	}
	for i, arm := range gain.Arms {
		if len(a.Sides[i].Paths) == 0 {
			return usagef("none of %s has %s in its name: give the normal side and the perfect side; 'moebalance trace' "+
				"reads one arm alone", quantity.Count(len(a.Sides[1-i].Paths), "file"), arm)
		}
	}
	return nil
}

// hold puts captures that may hold both arms on both sides; why says what is wrong if they do not.
func (a *Arms) hold(all []Input, why error) error {
	if slices.ContainsFunc(all, func(in Input) bool { return in.Kind != Captures || in.Arm != "" }) {
		return why
	}
	for i, arm := range gain.Arms {
		a.Sides[i] = Side{Input{Captures, arm, a.Paths}, why}
	}
	return nil
}

// Trace reads the traces of a side, with the expert statistics of the same run.
func (s Side) Trace(ctx context.Context, o trace.Options, recorded Statistics) (*trace.Trace, error) {
	if s.Unsorted != nil {
		o.Arm = string(s.Arm)
	}
	t, err := Trace(ctx, s.Paths, o, recorded)
	if errors.Is(err, trace.ErrArm) && s.Unsorted != nil {
		err = s.Unsorted
	}
	return t, err
}
