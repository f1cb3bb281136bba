package plan

import (
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

func problem(t testing.TB, experts, k, groups, tg, ranks int, mode router.Mode, tokens ...int) Problem {
	t.Helper()
	l := must(router.Contiguous(experts, ranks))
	if len(tokens) == 1 {
		tokens = slices.Repeat(tokens, ranks)
	}
	return Problem{Shape: router.Shape{Experts: experts, TopK: k, Groups: groups, TopKGroups: tg}, Layout: l,
		Mode: mode, Tokens: tokens}
}

func certify(t testing.TB, name string, p Problem, o Options) Certificate {
	t.Helper()
	plan := must(New(name, p, o))
	return Certify(p, plan)
}

// must is what a test is prepared with; a preparation that fails ends the tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
