package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
)

// Side is the files of one arm, all of one kind. Arm is the arm to read of captures on both sides, which may hold the
// steps of both arms; else "".
type Side struct {
	Paths []string
	Arm   gain.Arm
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
// record. Captures of no arm are on both sides, since they may hold both. Of a campaign there is the first side alone.
func ReadArms(args []string, skipped func(paths []string)) (kind Kind, sides [2]Side, err error) {
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
	paths, twice := pathsOf(all), noneTwice(pathsOf(all))
	other := slices.IndexFunc(all, func(in Input) bool { return in.Kind != kind })
	switch wrong := taken(all, Captures, Files); {
	case wrong != nil:
		err = wrong
	case other > 0:
		err = usagef("%s and %s are of different kinds: want traces only, or benchmark reports only", paths[0], paths[other])
	case len(args) != 2 && twice != nil:
		err = twice
	case len(args) != 2:
		none := !slices.ContainsFunc(paths, func(path string) bool { return armOf(path) != "" })
		if sides, err = sorted(all); err != nil && kind == Captures && none {
			return kind, [2]Side{{paths, gain.Normal}, {paths, gain.Perfect}}, nil
		}
	case twice != nil && kind == Files:
		err = marked{fmt.Errorf("%v, on both sides: want launches of the two arms", twice), ErrNotComparable}
	}
	return kind, sides, err
}

// sorted gives each file to the side of the arm that it is named after, or that it records.
func sorted(all []Input) (sides [2]Side, err error) {
	for _, in := range all {
		arm := string(armOf(in.Path))
		if arm == "" && in.Kind == Captures {
			arm, _ = trace.ReadArm(context.Background(), in.Path)
		}
		i := slices.Index(gain.Arms[:], gain.Arm(arm))
		if i < 0 {
			return sides, Meant(in.Path, usagef("the name of %q contains neither normal nor perfect, and it records no arm: "+
				"give two sides, with patterns in quotes or commas between files", in.Path), Captures, Reports)
		}
		sides[i].Paths = append(sides[i].Paths, in.Path)
	}
	for i, arm := range gain.Arms {
		if len(sides[i].Paths) == 0 {
			return sides, usagef("no file has %s in its name: give the normal side and the perfect side; 'moebalance trace' "+
				"reads one arm alone", arm)
		}
	}
	return sides, nil
}
