package imbalance

import (
	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/router"
)

// fewestTurns is how often steps change between two lists of busiest ranks at least. Of one model they changed in real
// captures once, over four ranks with data-parallel attention; in a generated capture of two models in turn
// seven times in 12 steps.
const fewestTurns = 3

// Turns gives each step that counts the busiest rank of every layer, where these are one of two lists in turn: of two
// models with equal layers, or of two batches. It is nil where they are not, and where one rank takes the place of one
// other alone, which has fewer tokens then, or as many.
func (t *Times) Turns() map[router.OptInt]string {
	counted, busiest := t.StepsOf(Counts), map[router.OptInt]string{}
	for _, l := range t.Judged() {
		for s, experts := range l.Experts {
			busiest[router.OptInt(counted[s])] += string(rune(floats.MaxIdx(experts)))
		}
	}
	turns, lists, swaps := 0, map[string]bool{}, map[[2]rune]bool{}
	for i := range len(counted) - 1 {
		a, b := busiest[router.OptInt(counted[i])], busiest[router.OptInt(counted[i+1])]
		first, second := []rune(min(a, b)), []rune(max(a, b))
		if lists[a], lists[b] = true, true; len(first) != len(second) || a == b {
			continue
		}
		turns++
		for l := range first {
			if first[l] != second[l] {
				swaps[[2]rune{first[l], second[l]}] = true
			}
		}
	}
	if len(lists) != 2 || turns < fewestTurns || len(swaps) < 2 {
		return nil
	}
	return busiest
}
