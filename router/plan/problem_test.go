package plan

import (
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
	return Certify(p, plan)
}
