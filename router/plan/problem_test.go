package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

func problem(t testing.TB, experts, k, groups, tg, ranks int, mode router.Mode, tokens ...int) Problem {
	t.Helper()
	l, err := router.Contiguous(experts, ranks)
	if err != nil {
		t.Fatal(err)
	}
	if len(tokens) == 1 {
		tokens = slices.Repeat(tokens, ranks)
	}
	return Problem{Shape: router.Shape{Experts: experts, TopK: k, Groups: groups, TopKGroups: tg}, Layout: l,
		Mode: mode, Tokens: tokens}
}

func certify(t testing.TB, name string, p Problem, o Options) Certificate {
	t.Helper()
	plan, err := New(name, p, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Certify(p, plan)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sparePlacement deals experts, and more copies of the first quarter of them, in
// random order to ranks with room, no expert twice to one.
func sparePlacement(t testing.TB, experts, ranks, per int, random *rand.Rand) router.Layout {
	for {
		var copies []int32
		for i := range ranks * per {
			if i < experts {
				copies = append(copies, int32(i))
			} else {
				copies = append(copies, int32(random.IntN(experts/4)))
			}
		}
		random.Shuffle(len(copies), func(i, j int) { copies[i], copies[j] = copies[j], copies[i] })
		held := make([][]int32, ranks)
		left := 0
		for _, e := range copies {
			from := random.IntN(ranks)
			at := 0
			for at < ranks && (len(held[(from+at)%ranks]) == per || slices.Contains(held[(from+at)%ranks], e)) {
				at++
			}
			if at == ranks {
				left++
				continue
			}
			held[(from+at)%ranks] = append(held[(from+at)%ranks], e)
		}
		if left > 0 {
			continue // the last copies found no room: deal again
		}
		l, err := router.Placed(experts, held)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}
