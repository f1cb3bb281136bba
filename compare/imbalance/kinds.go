package imbalance

import (
	"cmp"
	"slices"
)

// StepWork is what decides the kind of a step.
type StepWork struct {
	// Kernels stands for the set of kernels that did the work of experts, and for what
	// ranges call the step: steps that differ in it are of different kinds.
	Kernels string
	Tokens  int // 0 where not known
	// OutsideNS is compute outside the experts, over all ranks. It follows the number of
	// tokens, and not how evenly they are routed.
	OutsideNS float64
}

// kindFactor is how many times as many tokens as the smallest step the largest of one
// kind may have. Where tokens are not known, it is of the time outside the experts.
const kindFactor = 2

// Kinds numbers the kinds of steps, in order of their first step. Times of steps of
// different kinds are not averaged.
func Kinds(steps []StepWork) []int {
	byKernels := map[string][]int{}
	for i, s := range steps {
		byKernels[s.Kernels] = append(byKernels[s.Kernels], i)
	}
	largest := make([]int, len(steps)) // of its kind, which stands for it
	for _, list := range byKernels {
		size := func(i int) float64 { return float64(steps[i].Tokens) }
		if slices.ContainsFunc(list, func(i int) bool { return steps[i].Tokens == 0 }) {
			size = func(i int) float64 { return steps[i].OutsideNS }
		}
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
		top := list[0]
		for _, i := range list {
			if kindFactor*size(i) < size(top) {
				top = i
			}
			largest[i] = top
		}
	}
	kinds, number := make([]int, len(steps)), map[int]int{}
	for i, top := range largest {
		if _, known := number[top]; !known {
			number[top] = len(number)
		}
		kinds[i] = number[top]
	}
	return kinds
}
