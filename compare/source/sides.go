package source

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router/quantity"
)

// Side is the files of one arm, all of one kind.
type Side struct {
	Input
	// Unsorted says of captures on both sides, which may hold the steps of both arms, why they were
	// not sorted into two sides.
	Unsorted error
}

// Sides sorts the arguments of a comparison into the sides of gain.Arms. Two arguments are a side
// each; more, or what a single one holds, are sorted by the arm that files or folders are named
// after, or that captures record. Captures of no arm may hold both.
func Sides(args []string, skipped Skipped) (sides [2]Side, err error) {
	var all []Input
	for i, arg := range args {
		inputs, err := Classify(arg, skipped)
		if err != nil {
			return sides, err
		}
		all = append(all, inputs...)
		for _, in := range inputs {
			if len(args) == 2 {
				sides[i].Paths = append(sides[i].Paths, in.Paths...)
			}
		}
	}
	return sortedSides(args, all, sides)
}

// sortedSides fills the sides from all inputs where two arguments have not, and checks them.
func sortedSides(args []string, all []Input, sides [2]Side) ([2]Side, error) {
	kind := all[0].Kind
	for _, in := range all {
		switch {
		case in.Kind == Campaigns:
			return sides, usagef("%s is a result of bench, which holds both arms: %s", in.Paths[0], campaignAlone(in.Paths[0]))
		case (in.Kind == Captures || in.Kind == TraceResults) != (kind == Captures || kind == TraceResults):
			return sides, usagef("%s and %s are of different kinds: want traces only, or benchmark reports only",
				all[0].Paths[0], in.Paths[0])
		}
	}
	sides[0].Kind, sides[1].Kind = kind, all[len(all)-1].Kind
	if len(args) != 2 {
		for _, in := range all {
			for _, path := range in.Paths {
				arm := in.Arm
				if arm == "" && in.Kind == Captures {
					recorded, _ := trace.ReadArm(context.Background(), path, trace.Options{})
					arm = gain.Arm(recorded)
				}
				i := slices.Index(gain.Arms[:], arm)
				if i < 0 {
					return bothSides(all, usagef("the name of %q contains neither normal nor perfect, and it records no arm: give "+
						"two sides, with patterns in quotes or commas between files", path))
				}
				sides[i].Paths = append(sides[i].Paths, path)
			}
		}
	}
	for i, arm := range gain.Arms {
		side := &sides[i]
		if len(side.Paths) == 0 {
			err := usagef("none of %s has %s in its name: give the normal side and the perfect side; 'moebalance trace' "+
				"reads one arm alone", quantity.Count(len(sides[1-i].Paths), "file"), arm)
			return bothSides(all, err)
		}
		if twice, ok := repeated(side.Paths); ok {
			return sides, usagef("%s is named twice", twice)
		}
		if side.Kind == TraceResults && len(side.Paths) > 1 {
			return sides, usagef("want one JSON result of trace, have %d: summaries (trace --summary) can be merged, "+
				"results cannot", len(side.Paths))
		}
	}
	if path, same := repeated(slices.Concat(sides[1].Paths, sides[0].Paths)); same && kind == Reports {
		return sides, marked{fmt.Errorf("%s is on both sides: want launches of the two arms", path), ErrNotComparable}
	}
	return sides, nil
}

// bothSides are captures that may hold both arms; err says what is wrong if they do not.
func bothSides(all []Input, err error) (sides [2]Side, _ error) {
	for i, arm := range gain.Arms {
		sides[i] = Side{Input{Kind: Captures, Arm: arm}, err}
		for _, in := range all {
			if in.Kind != Captures || in.Arm != "" {
				return sides, err
			}
			sides[i].Paths = append(sides[i].Paths, in.Paths...)
		}
	}
	return sides, nil
}

// Trace reads the traces of a side, with the expert statistics of the same run.
func (s Side) Trace(ctx context.Context, o trace.Options, recorded Statistics) (*trace.Trace, error) {
	if s.Kind != TraceResults {
		if s.Unsorted != nil {
			o.Arm = string(s.Arm)
		}
		t, err := Trace(ctx, s.Paths, o, recorded)
		if errors.Is(err, trace.ErrArm) && s.Unsorted != nil {
			err = s.Unsorted
		}
		return t, err
	}
	path, again := s.Paths[0], ""
	if o.Steps != nil {
		again = fmt.Sprintf("--steps %s", o.Steps)
	} else if recorded.Path != "" {
		again = "--counts " + recorded.Path
	}
	if again != "" {
		return nil, usagef("%s is a JSON result of trace, which is judged already: make it with trace %s", path, again)
	}
	result, err := ReadResult(path)
	return result.Trace, err
}
