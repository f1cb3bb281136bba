package router

import (
	"errors"
	"fmt"
)

// ErrShape is wrapped by every error about impossible routing dimensions.
var ErrShape = errors.New("impossible routing shape")

// MaxExperts is the most routed experts that a config may ask for and chance is
// simulated for. Real models stay below 1024.
const MaxExperts = 1 << 16

// Shape is how a model routes: E experts, k chosen per token, and for
// group-limited methods the groups the experts are divided into.
type Shape struct {
	Experts    int `json:"experts"`      // E, routed experts of one layer; shared experts do not count
	TopK       int `json:"top_k"`        // k, distinct experts per token
	Groups     int `json:"groups"`       // G, equal contiguous groups of experts; 0 and 1 both mean no groups
	TopKGroups int `json:"top_k_groups"` // tg, groups one token may use; ignored without groups
}

// Grouped reports whether the shape limits a token to some of several groups.
func (s Shape) Grouped() bool { return s.Groups > 1 }

// GroupSize is E/G, the experts of one group; E when there are no groups.
func (s Shape) GroupSize() int {
	if !s.Grouped() {
		return s.Experts
	}
	return s.Experts / s.Groups
}

// GroupLimit is the number of groups one token may use: tg with groups; without,
// all experts are one group and it is 1.
func (s Shape) GroupLimit() int {
	if !s.Grouped() {
		return 1
	}
	return s.TopKGroups
}

// Reachable is the number of experts one token can choose among: tg·E/G with
// groups, E without. It is at least TopK in a valid shape.
func (s Shape) Reachable() int { return s.GroupLimit() * s.GroupSize() }

// Validate returns an error that wraps ErrShape and states both numbers when
// the dimensions contradict each other.
func (s Shape) Validate() error {
	switch {
	case s.Experts < 1:
		return fmt.Errorf("%w: want at least 1 expert, have %d", ErrShape, s.Experts)
	case s.TopK < 1 || s.TopK > s.Experts:
		return fmt.Errorf("%w: want top-k between 1 and %d (the experts), have %d", ErrShape, s.Experts, s.TopK)
	case s.Groups < 0:
		return fmt.Errorf("%w: want 0 or more groups, have %d", ErrShape, s.Groups)
	case !s.Grouped():
		return nil
	case s.Experts%s.Groups != 0:
		return fmt.Errorf("%w: %d experts do not divide into %d equal groups", ErrShape, s.Experts, s.Groups)
	case s.TopKGroups < 1 || s.TopKGroups > s.Groups:
		return fmt.Errorf("%w: want between 1 and %d groups per token, have %d", ErrShape, s.Groups, s.TopKGroups)
	case s.Reachable() < s.TopK:
		return fmt.Errorf("%w: %d groups of %d experts cannot hold top-%d", ErrShape, s.TopKGroups, s.GroupSize(),
			s.TopK)
	}
	return nil
}

// String names the shape the way reports do: "256 experts, top-8, 4 of 8 groups".
func (s Shape) String() string {
	if s.Grouped() {
		return fmt.Sprintf("%d experts, top-%d, %d of %d groups", s.Experts, s.TopK, s.TopKGroups, s.Groups)
	}
	return fmt.Sprintf("%d experts, top-%d", s.Experts, s.TopK)
}
