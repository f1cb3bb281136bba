package trace

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/router/input"
)

// ReadArm is the arm of a file by its environment: the Arm that Read would give its
// Trace. It reads no event.
func ReadArm(ctx context.Context, path string) (arm string, err error) {
	if IsSummary(path) {
		exports, err := readSummary(path)
		if err == nil {
			arm, _ = armOf(exports)
		}
		return arm, err
	}
	p, err := capture.ReadMetadata(ctx, path)
	if err == nil {
		arm, _ = p.Arm()
	}
	return arm, err
}

// armOf is the arm of all exports with its evidence; unknown where some of them do not say. oneRun has
// refused captures of both.
func armOf(exports []*exportSummary) (arm, evidence string) {
	first := exports[0]
	if slices.ContainsFunc(exports, func(d *exportSummary) bool { return d.Arm != first.Arm }) {
		return "", "not all exports record the arm"
	}
	return first.Arm, first.ArmEvidence
}

// ErrArm is the error of captures in which no range names the arm that is asked for.
var ErrArm = errors.New("no step of the arm")

// OtherArms is the code of the warning that the captures hold steps of other arms too.
const OtherArms = "other_arms"

// selectArm keeps the steps of one arm where the hook's ranges name arms: the one asked
// for, else the normal arm, else the first. A step whose ranks name different arms, or
// whose order lapsed, belongs to none. The first step of the arm after another's is left out if
// the arm has more: ranks do not finish a switch together, and wait for each other then.
// Where no range names an arm, and none is asked for, all steps stay.
func (r *reduction) selectArm() error {
	named, armOf, arms := map[int32]string{}, map[int32]string{}, []string{}
	for _, d := range r.exports {
		maps.Copy(named, d.StepNames)
	}
	steps := slices.Sorted(maps.Keys(named))
	for _, step := range steps {
		if armOf[step] = r.batch(step).Arm; armOf[step] != "" && !slices.Contains(arms, armOf[step]) {
			arms = append(arms, armOf[step])
		}
	}
	want := cmp.Or(r.options.Arm, capture.Normal)
	switch {
	case slices.Contains(arms, want):
	case r.options.Arm != "":
		return &input.Error{File: r.exports[0].Export.Path, Expected: "steps of the arm " + want,
			Found: "steps of " + cmp.Or(strings.Join(arms, ", "), "no arm that a range names (moebalance step=… arm=…)"),
			Try:   "give the captures of each arm", Err: ErrArm}
	case len(arms) == 0:
		return nil
	default:
		want = arms[0]
	}
	var own, switched []int32
	for i, step := range steps {
		if armOf[step] == want {
			if own = append(own, step); i > 0 && armOf[steps[i-1]] != want {
				switched = append(switched, step)
			}
		}
	}
	if n := len(switched); n > 0 && n < len(own) {
		r.warn("switched", "steps", switched)
		own = slices.DeleteFunc(own, func(step int32) bool { return slices.Contains(switched, step) })
	}
	for _, p := range r.ranks {
		p.events = slices.DeleteFunc(p.events, func(e event) bool {
			_, is := slices.BinarySearch(own, p.place(&e).Step)
			return !is
		})
	}
	r.partial = true
	r.trace.Arm, r.trace.ArmEvidence = want, "the hook's ranges of steps"
	others := slices.DeleteFunc(arms, func(arm string) bool { return arm == want })
	if r.options.Arm == "" && len(others) > 0 {
		r.warn(OtherArms, "arm", want, "others", others)
	}
	return nil
}
