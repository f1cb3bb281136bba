package replay

import (
	"math"
	"slices"
)

// Split reports ranks that do not wait for each other: in most steps they leave the most frequent
// collective as far apart as they come.
func (r *Run) Split() bool {
	split := 0
	for _, s := range r.steps {
		if s.split {
			split++
		}
	}
	return 2*split > len(r.steps)
}

// Ranks of a group leave a collective at most surelyTogether nanoseconds apart, 90 of 100 times, or so
// much closer than they come: 3.3 µs in most real steps, and 0.51 of it in others; groups that run alike
// steps have 0.65 and more. Where loads vary, groups come as far apart as ranks of one; but of two groups some
// ranks leave together and others do not: the furthest two are 170 times as far apart as the closest and more,
// in 520 steps of real groups 9.1 times at most.
const (
	surelyTogether = 10e3
	surelyCloser   = 0.58
	mostFurther    = 20
	clockStep      = 32 // by which profilers tell times
)

// split reports ranks that leave the collectives of a name apart.
func (s *Step) split(at [][]int) bool {
	if len(at[0]) < leastLayers {
		return false
	}
	least, most := math.Inf(1), 0.0
	for r := range at[1:] {
		for _, pair := range [][2]int{{r + 1, 0}, {r + 1, r}} { // a rank of one's own group is the first or a neighbor
			ends := spread(s.apart(at, pair[0], pair[1], end))
			least, most = min(least, ends), max(most, ends)
			if pair[1] == 0 && ends > surelyTogether && ends > surelyCloser*spread(s.apart(at, pair[0], 0, start)) {
				return true
			}
		}
	}
	return len(at) > 2 && most > mostFurther*max(least, clockStep)
}

// StayRatio is by how much the shortest stays in the collectives behind experts differ over the
// layers of a step, 90th percentile over 10th, median over steps. All of their ranks that were
// recorded stay long where the rank that arrives last was not; 1 for fewer than four layers.
func (r *Run) StayRatio() float64 {
	var ratios []float64
	for _, s := range r.steps {
		byName := map[int32][]float64{} // of collectives
		behind := make([]bool, len(s.meetings))
		for _, segments := range s.ranks {
			for i := range segments {
				if m := segments[i].meeting; m >= 0 && segments[i].layer != None {
					behind[m] = true
				}
			}
		}
		for m, is := range behind {
			if is {
				byName[s.meetings[m].name] = append(byName[s.meetings[m].name], s.meetings[m].transfer)
			}
		}
		most := 1.0
		for _, stays := range byName {
			if n := len(stays); n >= leastLayers {
				slices.Sort(stays)
				if least := stays[n/10]; least > 0 {
					most = max(most, stays[9*n/10]/least)
				}
			}
		}
		ratios = append(ratios, most)
	}
	return middle(ratios)
}

// leastLayers is how many stays a step must have to compare them.
const leastLayers = 8
