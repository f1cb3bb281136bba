package control

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Arm is a router that a launch switches to.
type Arm struct {
	Name   string `json:"name"`
	Router string `json:"router"`
}

// Target is the imbalance over ranks, max/mean, that the arm's router is told to make; 0 where it is told
// none.
func (a Arm) Target() float64 {
	if a.Router == Perfect {
		return 1
	}
	value, _ := strings.CutPrefix(a.Router, "target:")
	target, _ := strconv.ParseFloat(value, 64) // 0 of another router
	return target
}

// IsRouter reports whether a text names a router beside the learned and the balanced one, such as
// target:1.2 or recorded:FILE; the error says what is wrong with one.
func IsRouter(text string) (bool, error) {
	switch {
	case !named.MatchString(text):
		return false, nil
	case strings.HasPrefix(text, "target:") && !(Arm{Router: text}.Target() > 1):
		return true, fmt.Errorf("%q: want a max/mean over ranks above 1, such as target:1.2", text)
	}
	return true, nil
}

var named = regexp.MustCompile(`^(target|recorded):.`)

// Plan is what one launch measures: an untimed segment of each arm in the order of the
// first block, then the blocks. A block is an order of the arms and its reverse.
type Plan struct {
	Blocks [][]Arm
	Points [][]string // of a segment of each block, in order; one empty where there is one load
	// Separate gives each point an order of its own, so that what is recorded under it is of that point alone.
	Separate bool
}

// Orders draws so many orders of the arms, each second one the reverse of the one before: over both, every arm is in
// the same place on average, and what a drift adds goes out.
//
//	two arms → AB BA BA AB, for one
func Orders[A any](arms []A, n int, seed, stream uint64) (orders [][]A) {
	for draw := rand.New(rand.NewPCG(seed, stream)); len(orders) < n; {
		order := slices.Clone(arms)
		draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		orders = append(orders, order, reversed(order))
	}
	return orders[:n]
}

func reversed[A any](order []A) []A {
	order = slices.Clone(order)
	slices.Reverse(order)
	return order
}

// Blocks are so many blocks of a launch, each an order and its reverse: of two arms ABBA and BAAB, or the other way.
func Blocks(arms []Arm, blocks, launch int, seed uint64) (all [][]Arm) {
	const stream = 0x626c6f636b
	for _, order := range Orders(arms, (launch+1)*blocks, seed, stream)[launch*blocks:] {
		all = append(all, slices.Concat(order, reversed(order)))
	}
	return all
}
