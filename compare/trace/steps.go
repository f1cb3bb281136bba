package trace

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Steps is a range of steps, both ends included.
type Steps struct{ First, Last int }

// ErrSteps is the error of a range of steps that the captures do not have.
var ErrSteps = errors.New("no such steps")

// ParseSteps reads "3-7", or "3" for one step.
func ParseSteps(text string) (*Steps, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	a, err := strconv.Atoi(strings.TrimSpace(first))
	b, otherErr := strconv.Atoi(strings.TrimSpace(last))
	if err != nil || otherErr != nil || a < 0 || b < a || b > math.MaxInt32 {
		return nil, fmt.Errorf("want the first and the last step, such as 3-7, have %q", text)
	}
	return &Steps{a, b}, nil
}

// String is how ParseSteps reads it.
func (s Steps) String() string {
	if s.First == s.Last {
		return strconv.Itoa(s.First)
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// selectSteps keeps only what ran in the steps that count. Where the range is not within
// what any rank recorded, the error wraps ErrSteps. A share of kernels without launch is
// known of whole captures only.
func (r *reduction) selectSteps() error {
	want := r.options.Steps
	if want == nil {
		return nil
	}
	recorded := r.recordedSteps()
	if len(recorded) == 0 {
		return fmt.Errorf("--steps %s: %w: none are known; name them by NVTX ranges, or with --range", want, ErrSteps)
	}
	least, most := int(recorded[0]), int(recorded[len(recorded)-1])
	if want.First < least || want.Last > most {
		return fmt.Errorf("--steps %s: %w: the captures have %s", want, ErrSteps, Steps{least, most})
	}
	r.keep(func(step int32) bool { return int(step) >= want.First && int(step) <= want.Last })
	r.trace.Steps = want.String()
	r.warn("selected_steps", "", "first", want.First, "last", want.Last, "least", least, "most", most)
	return nil
}

// keep leaves only what ran in some steps.
func (r *reduction) keep(within func(step int32) bool) {
	for _, p := range r.ranks {
		p.events = slices.DeleteFunc(p.events, func(e event) bool { return !within(p.place(&e).Step) })
		p.rows = nil
	}
	r.partial = true
}

// recordedSteps are the numbers of the steps in which any rank ran, ascending.
func (r *reduction) recordedSteps() []int32 {
	return slices.Sorted(maps.Keys(sums(r, func(g group) (int32, bool) { return g.at.Step, g.at.Step != NoID })))
}
