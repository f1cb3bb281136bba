package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Goal is what the busiest rank's loads in the windows are brought to: their mean, max, or a
// quantile such as p90, of n windows in order the one behind the first ⌊0.9·n⌋. Empty for none.
type Goal string

// ParseGoal reads mean, max, or p and the percent of a quantile.
func ParseGoal(text string) (Goal, error) {
	if text == "" || text == "mean" || text == "max" {
		return Goal(text), nil
	}
	if q, ok := strings.CutPrefix(text, "p"); ok {
		if n, err := strconv.ParseFloat(q, 64); err == nil && n > 0 && n < 100 {
			return Goal(text), nil
		}
	}
	return "", fmt.Errorf("want mean, max or a quantile such as p90, have %q", text)
}

// of sorts the peaks and takes what the goal is of them.
func (g Goal) of(peaks []float64) float64 {
	slices.Sort(peaks)
	switch n := len(peaks); g {
	case "max":
		return peaks[n-1]
	case "mean":
		sum := 0.0
		for _, p := range peaks {
			sum += p
		}
		return sum / float64(n)
	default:
		percent, _ := strconv.ParseFloat(string(g[1:]), 64)
		return peaks[min(n-1, int(percent/100*float64(n)))]
	}
}

// mostReached bounds the swaps toward a goal.
const mostReached = 64

// reach swaps experts of the ranks that are busiest in some window while that lowers the goal.
func (x *even) reach(shares [][]float64, goal Goal) {
	copies := make([]float64, x.experts)
	for _, e := range x.slots {
		copies[e]++
	}
	load, peaks := make([][]float64, len(shares)), make([]float64, len(shares))
	for range mostReached {
		var busy []int
		for w, share := range shares {
			load[w] = make([]float64, len(x.slots)/x.perRank)
			for slot, e := range x.slots {
				load[w][slot/x.perRank] += share[e] / copies[e]
			}
			peaks[w] = slices.Max(load[w])
			busy = append(busy, slices.Index(load[w], peaks[w]))
		}
		value, from, to := goal.of(peaks), -1, -1
		slices.Sort(busy)
		for _, rank := range slices.Compact(busy) {
			for a := rank * x.perRank; a < (rank+1)*x.perRank; a++ {
				first, end := x.partners(a)
				for b := first * x.perRank; b < end*x.perRank; b++ {
					if b/x.perRank == rank || !x.allowed(a, b) {
						continue
					}
					for w, share := range shares {
						peaks[w] = swapped(load[w], rank, b/x.perRank,
							share[x.slots[b]]/copies[x.slots[b]]-share[x.slots[a]]/copies[x.slots[a]])
					}
					if v := goal.of(peaks); v < value+least {
						value, from, to = v, a, b
					}
				}
			}
		}
		if from < 0 {
			return
		}
		x.swap(from, to)
	}
}

// swapped is the largest load if one rank gets so much from another.
func swapped(load []float64, to, from int, more float64) (peak float64) {
	for r, v := range load {
		switch r {
		case to:
			v += more
		case from:
			v -= more
		}
		peak = max(peak, v)
	}
	return peak
}
