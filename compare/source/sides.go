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
	Paths []string
	// Arm is the arm to read of captures on both sides, which may hold the steps of both arms; else "". Unsorted
	// says why they were not sorted into two sides.
	Arm      gain.Arm
	Unsorted error
}

// Named is the arm that all files of the side are named after, "" for none.
func (s Side) Named() gain.Arm {
	first := armOf(s.Paths[0])
	if slices.ContainsFunc(s.Paths, func(path string) bool { return armOf(path) != first }) {
		return ""
	}
	return first
}

// ReadArms sorts the arguments of a comparison. Two of them are a side each; more, or what a single
// one holds, are sorted by the arm that files or folders are named after, or that captures
// record. Captures of no arm may hold both. Of a campaign there is the first side alone.
func ReadArms(args []string, skipped Skipped) (kind Kind, sides [2]Side, err error) {
	var all []Input
	for i := range args {
		inputs, err := Classify(args[i:i+1], skipped)
		if err != nil {
			return kind, sides, err
		}
		side := &sides[min(i, 1)]
		side.Paths, all = append(side.Paths, pathsOf(inputs)...), append(all, inputs...)
	}
	if kind = all[0].Kind; kind == Campaigns && len(all) == 1 {
		return kind, sides, nil
	}
	for _, in := range all {
		switch err := in.notCompared(); {
		case err != nil:
			return kind, sides, err
		case in.Kind != kind:
			return kind, sides, usagef("%s and %s are of different kinds: want traces only, or benchmark reports only",
				all[0].Path, in.Path)
		}
	}
	twice := noneTwice(pathsOf(all))
	switch {
	case len(args) != 2 && twice != nil:
		return kind, sides, twice
	case len(args) != 2:
		sides, err = sorted(all)
	case twice != nil && kind == Reports:
		err = marked{fmt.Errorf("%v, on both sides: want launches of the two arms", twice), ErrNotComparable}
	}
	return kind, sides, err
}

// sorted gives each file to the side of its arm. Captures of no arm are on both sides, since they may hold both.
func sorted(all []Input) (sides [2]Side, err error) {
	sides, err = byNames(all)
	if err == nil || slices.ContainsFunc(all, func(in Input) bool { return in.Kind != Captures || armOf(in.Path) != "" }) {
		return sides, err
	}
	for i, arm := range gain.Arms {
		sides[i] = Side{Paths: pathsOf(all), Arm: arm, Unsorted: err}
	}
	return sides, nil
}

// byNames sorts files by the arm that they are named after, or that they record.
func byNames(all []Input) (sides [2]Side, err error) {
	for _, in := range all {
		arm := string(armOf(in.Path))
		if arm == "" && in.Kind == Captures {
			arm, _ = trace.ReadArm(context.Background(), in.Path, trace.Options{})
		}
		i := slices.Index(gain.Arms[:], gain.Arm(arm))
		if i < 0 && in.Kind == Reports {
			if _, err := ReadCounts(in.Path, nil); err == nil {
				return sides, Input{Counts, in.Path}.notCompared()
			}
		}
		if i < 0 {
			return sides, usagef("the name of %q contains neither normal nor perfect, and it records no arm: give two "+
				"sides, with patterns in quotes or commas between files", in.Path)
		}
		sides[i].Paths = append(sides[i].Paths, in.Path)
	}
	for i, arm := range gain.Arms {
		if len(sides[i].Paths) == 0 {
			return sides, usagef("none of %s has %s in its name: give the normal side and the perfect side; 'moebalance "+
				"trace' reads one arm alone", quantity.Count(len(sides[1-i].Paths), "file"), arm)
		}
	}
	return sides, nil
}

// Trace reads the traces of a side, with the expert statistics of the same run.
func (s Side) Trace(ctx context.Context, o trace.Options, recorded Statistics) (*trace.Trace, error) {
	o.Arm = string(s.Arm)
	t, err := Trace(ctx, s.Paths, o, recorded)
	if errors.Is(err, trace.ErrArm) && s.Unsorted != nil {
		err = s.Unsorted
	}
	return t, err
}
