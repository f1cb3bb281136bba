package steps

import (
	"maps"
	"slices"
)

// LayersOfSteps numbers the blocks in steps that are known by other means, −1 for no step, where all have the same
// number n of blocks, the layers: steps 4, 4, 5, 5 have layers 0, 1, 0, 1. n is 0 if the numbers of blocks differ,
// where a step may be a piece of one, and where microbatches overlap.
func (s Structure) LayersOfSteps(steps []int32) (layers []int32, n int) {
	if len(steps) == 0 || slices.Contains(steps, -1) || s.Unknown == overlapping || s.Unknown == backwardToo {
		return nil, 0
	}
	whole := 0
	layers = make([]int32, len(steps))
	for b := range steps {
		if b > 0 && steps[b] == steps[b-1] {
			layers[b] = layers[b-1] + 1
		} else {
			whole++
		}
		n = max(n, int(layers[b])+1)
	}
	piece := whole < 2 && n != s.Layers || s.Layers > n && s.Layers%n == 0 // a range for each piece of a step
	if len(steps) != whole*n || piece || s.of.parts != nil && len(s.of.unlike(period{n, 0}.steps(len(steps)))) > 0 {
		return nil, 0
	}
	return layers, n
}

// Ends is the last launch of the layer of each block: the first collective behind it, or
// without one what stands before the next attention or dense GEMM.
func (s Structure) Ends(launches []Launch) []int {
	ends := make([]int, len(s.Blocks))
	for b, block := range s.Blocks {
		next := len(launches)
		if b+1 < len(s.Blocks) {
			next = s.Blocks[b+1].First
		}
		ends[b] = endOf(launches[:next], block.Last)
	}
	return ends
}

func endOf(launches []Launch, last int) int {
	end, dense := last, false
	for i := last + 1; i < len(launches); i++ {
		switch launches[i].Anchor {
		case Collective:
			return i
		case None:
		case Dense, Norm:
			dense = true
		default:
			return end
		}
		if !dense {
			end = i
		}
	}
	if dense { // which only follows a whole layer
		return end
	}
	return last // the recording ends, with or without the layer
}

// Models tells models apart by the layers of their steps: of one model a step may have mostFurther more than another,
// for drafts. Steps of 4, 12 and 13 layers are of models 4, 12 and 12.
func Models[Step comparable](layers map[Step]int) map[int]int {
	model, shortest := map[int]int{}, 0
	for _, n := range slices.Sorted(maps.Values(layers)) {
		if shortest == 0 || n > shortest+mostFurther {
			shortest = n
		}
		model[n] = shortest
	}
	return model
}
