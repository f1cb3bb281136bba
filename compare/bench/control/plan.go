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
	Points [][]string // of a segment of each block, in order; nil where there is one load
	// Separate gives each point an order of its own, so that what is recorded under it is of that point alone.
	Separate bool
}

// Orders plans the blocks of a launch: of two arms ABBA and BAAB in turn, beginning with the
// other one in every second launch; of more, orders drawn for each block.
func Orders(arms []Arm, blocks, launch int, seed uint64) (orders [][]Arm) {
	draw := rand.New(rand.NewPCG(seed, 0x626c6f636b<<20+uint64(launch))) // a stream of its own for each launch
	for b := range blocks {
		order := slices.Clone(arms)
		switch {
		case len(order) > 2:
			draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		case (b+launch)%2 == 1:
			slices.Reverse(order)
		}
		reverse := slices.Clone(order)
		slices.Reverse(reverse)
		orders = append(orders, slices.Concat(order, reverse))
	}
	return orders
}

// first are the arms in the order of the untimed segments, so that the first block begins
// with a change.
func (p Plan) first() []Arm {
	if len(p.Blocks) == 0 {
		return nil
	}
	return p.Blocks[0][:len(p.Blocks[0])/2]
}

func (p Plan) pointsOf(block int) []string {
	if block < len(p.Points) && len(p.Points[block]) > 0 {
		return p.Points[block]
	}
	return []string{""}
}

// Pairs draws the order of the arms in each of n pairs: of two AB then BA or the reverse, drawn for each
// two pairs. More go in Latin squares: over as many pairs as there are arms, each is once at each place.
// Every second square is the mirror of the one before, which of three arms makes all six orders.
func Pairs[A any](arms []A, n int, seed uint64) (orders [][]A) {
	draw := rand.New(rand.NewPCG(seed, 0x6d6f6562616c)) // the stream is the pairs' own
	for len(arms) == 2 && len(orders) < n {
		first := draw.IntN(2)
		a, b := arms[first], arms[1-first]
		orders = append(orders, []A{a, b}, []A{b, a})
	}
	base := slices.Clone(arms)
	for square := 0; len(orders) < n; square++ {
		if square%2 == 0 {
			draw.Shuffle(len(base), func(i, j int) { base[i], base[j] = base[j], base[i] })
		} else {
			slices.Reverse(base)
		}
		for _, shift := range draw.Perm(len(base)) {
			orders = append(orders, slices.Concat(base[shift:], base[:shift]))
		}
	}
	return orders[:n]
}
