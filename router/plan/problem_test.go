package plan

import (
	"slices"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

func problem(experts, k, groups, tg, ranks int, mode router.Mode, tokens ...int) Problem {
	l := require.Value(router.Contiguous(experts, ranks))
	if len(tokens) == 1 {
		tokens = slices.Repeat(tokens, ranks)
	}
	return Problem{Shape: router.Shape{Experts: experts, TopK: k, Groups: groups, TopKGroups: tg}, Layout: l,
		Mode: mode, Tokens: tokens}
}

func certify(name string, p Problem, o Options) Certificate {
	plan := require.Value(New(name, p, o))
	return Certify(p, plan)
}
