package difference

import (
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/shown"
)

// noWord stands for the word that one side of a difference lacks.
const noWord = "no such word"

// Words aligns two commands by their longest common subsequence and lists what is
// not in it: the n-th words of both sides between two common ones make a difference.
func Words(a, b []string) []gain.Difference {
	common := make([][]int, len(a)+1) // common[i][j] is the length for a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = 1 + common[i+1][j+1]
			}
		}
	}
	var found []gain.Difference
	var onlyA, onlyB []int // not common, since the last common word
	shownA, shownB := shown.Mask(a), shown.Mask(b)
	flush := func() {
		for n := range max(len(onlyA), len(onlyB)) {
			d := gain.Difference{Kind: "argument", Normal: noWord, Perfect: noWord}
			if n < len(onlyA) {
				d.Normal, d.Name = shownA[onlyA[n]], optionOf(shownA, onlyA[n])
			}
			if n < len(onlyB) {
				d.Perfect, d.Name = shownB[onlyB[n]], optionOf(shownB, onlyB[n])
			}
			found = append(found, d)
		}
		onlyA, onlyB = nil, nil
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			flush()
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			onlyA, i = append(onlyA, i), i+1
		default:
			onlyB, j = append(onlyB, j), j+1
		}
	}
	flush()
	return found
}

// optionOf is the option that a word is or belongs to; the word itself where it is
// neither.
func optionOf(words []string, at int) string {
	option, _, _ := strings.Cut(words[at], "=")
	switch {
	case strings.HasPrefix(option, "-"):
		return option
	case at > 0 && strings.HasPrefix(words[at-1], "-") && !strings.Contains(words[at-1], "="):
		return words[at-1]
	}
	return words[at]
}
