package router

import (
	"fmt"
	"testing"
)

func problem(t testing.TB, experts, k, groups, tg, ranks int, mode Mode, tokens ...int) Problem {
	t.Helper()
	l, err := Contiguous(experts, ranks)
	if err != nil {
		t.Fatal(err)
	}
	if len(tokens) == 1 {
		for len(tokens) < ranks {
			tokens = append(tokens, tokens[0])
		}
	}
	return Problem{Shape: Shape{experts, k, groups, tg}, Layout: l, Mode: mode, Tokens: tokens}
}

func certify(t testing.TB, name string, p Problem, o PlanOptions) Certificate {
	t.Helper()
	plan, err := NewPlan(name, p, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Certify(p, plan)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestScratch(t *testing.T) {
	for _, mode := range []Mode{DEP, TEP} {
		for _, ranks := range []int{1,2,3,4,5,6,7,8,12,16,24,32,48,64,96,128,256} {
			for T := 1; T <= 12; T++ {
				p := problem(t, 256, 8, 8, 4, ranks, mode, T)
				c := certify(t, "diagonal", p, PlanOptions{})
				bad := !c.Optimal || c.Expert.Spread() > 1 || (mode == DEP && c.ReceiverConflict != 1) || c.Rank.Spread() > 1
				pow := ranks&(ranks-1) == 0
				if bad && (pow || true) {
					fmt.Printf("%s R=%d T=%d %s opt=%v rank %d-%d/%d exp %d-%d/%d pair %d/%d act %d/%d conf %d valid %v grp %d\n", mode, ranks, T, c.Plan, c.Optimal, c.Rank.Min, c.Rank.Max, c.Rank.Floor, c.Expert.Min, c.Expert.Max, c.Expert.Floor, c.Pair.Max, c.Pair.Floor, c.ActiveExperts, c.ActiveExpertsIdeal, c.ReceiverConflict, c.Valid, c.Groups)
				}
			}
		}
	}
}
