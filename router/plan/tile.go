package plan

import "slices"

// tile gives each of several walkers its starting place on a circle. A walker
// takes `steps` places one after the other, so whole rounds aside it covers an
// arc of steps mod circle places. tile lays the arcs end to end, which makes
// every place covered equally often, up to the one open arc that begins at
// `from` and holds the remainder of all steps together.
//
// Arcs that close a full round may be turned freely without disturbing that.
// The freedom is spent on keeping walkers of the same class apart: walkers of
// one class move in lockstep, and would meet at every step if they started at
// the same place. Walkers of class −1 meet nobody. When all walkers of a class
// take the same number of steps and there are at most `circle` of them, they all
// start at different places.
func tile(steps []int, class []int, circle, from int) []int {
	start := make([]int, len(steps))
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return class[a] - class[b] })

	// Walk along, cutting out every stretch that returns to a place where one
	// of the walkers still in line has started: it is a closed round.
	var rounds [][]int
	line := make([]int, 0, len(steps))
	at := make([]int, circle) // 1 + index in line of the walker that starts there
	cursor := 0
	for _, w := range order {
		start[w] = cursor
		line = append(line, w)
		at[cursor] = len(line)
		cursor = (cursor + steps[w]) % circle
		if first := at[cursor] - 1; first >= 0 {
			for _, closed := range line[first:] {
				at[start[closed]] = 0
			}
			rounds = append(rounds, slices.Clone(line[first:]))
			line = line[:first]
		}
	}

	used := make([]int, circle*(slices.Max(class)+2))
	turn := func(walkers []int, by int) {
		for _, w := range walkers {
			start[w] = (start[w] + by) % circle
			used[(class[w]+1)*circle+start[w]]++
		}
	}
	turn(line, from)
	for _, round := range rounds {
		best, fewest := from, -1
		for by := from; by < from+circle && fewest != 0; by++ {
			meetings := 0
			for _, w := range round {
				if class[w] >= 0 {
					meetings += used[(class[w]+1)*circle+(start[w]+by)%circle]
				}
			}
			if fewest < 0 || meetings < fewest {
				best, fewest = by, meetings
			}
		}
		turn(round, best)
	}
	return start
}

// cover is how often a walker that starts at place 0 of a circle and takes the
// given number of steps is at a place.
func cover(steps, circle, place int) int {
	n := steps / circle
	if place < steps%circle {
		n++
	}
	return n
}

// coverFrom is cover for a walker that starts elsewhere.
func coverFrom(start, steps, circle, place int) int {
	return cover(steps, circle, (place-start+circle)%circle)
}
