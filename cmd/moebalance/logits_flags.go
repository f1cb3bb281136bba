package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

func bindSeed(f *pflag.FlagSet, seed *uint64) {
	f.Uint64Var(seed, "seed", 0, "seed of plans that draw random numbers")
}

// checkPlans finds names that are not known, and a seed that no plan uses.
func checkPlans(f *pflag.FlagSet, flag string, known []string, plans ...string) error {
	if len(plans) == 0 {
		return usagef("%s: want one or several of %s, have none", flag, strings.Join(known, ", "))
	}
	for _, name := range plans {
		if !slices.Contains(known, name) {
			return usagef("%s: want %s, have %q%s", flag, strings.Join(known, ", "), name, router.Near(name, known))
		}
	}
	if seeded := slices.DeleteFunc(slices.Clone(known), func(n string) bool { return !plan.Seeded(n) }); f.
		Changed("seed") && !slices.ContainsFunc(plans, plan.Seeded) {
		return usagef("--seed is for %s %s, have %s", flag, strings.Join(seeded, ", "), strings.Join(plans, ", "))
	}
	return nil
}

// batchFlags say how many tokens the ranks hold: the same number each, or
// unequally many, which gives the number of ranks too.
type batchFlags struct {
	tokens  []int
	unequal [][]int // tokens of each rank, by batch
	given   func(flag string) bool
}

func (b *batchFlags) bind(c *cobra.Command, tokens string) {
	bindTokens(c, &b.tokens, tokens)
	f := c.Flags()
	f.Func("unequal", "`TOKENS` of each rank, such as 5,0,3,7, in place of --ep and --tokens; again for further batches", b.addUnequal)
	b.given = f.Changed
}

func bindTokens(c *cobra.Command, tokens *[]int, preset string) {
	flags.Numbers(c, tokens, "tokens", preset, "batch sizes in tokens per rank")
}

// check compares every number of tokens with the most a rank may have.
func (b *batchFlags) check(most int) error {
	if len(b.unequal) == 0 {
		return checkTokens("--tokens", b.tokens, 1, most)
	}
	if b.given("ep") || b.given("tokens") {
		return usagef("--unequal has ranks and tokens: remove --ep and --tokens")
	}
	for _, each := range b.unequal {
		if err := checkTokens("--unequal", each, 0, most); err != nil {
			return err
		}
	}
	return nil
}

func checkTokens(flag string, tokens []int, least, most int) error {
	if slices.Min(tokens) < least || slices.Max(tokens) > most {
		return usagef("%s: want %d to %d tokens per rank, have %v", flag, least, most, tokens)
	}
	return nil
}

// addUnequal reads one batch. The same one again adds nothing.
func (b *batchFlags) addUnequal(text string) error {
	each, err := input.Numbers(text)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(b.unequal, func(known []int) bool { return slices.Equal(known, each) }) {
		b.unequal = append(b.unequal, each)
	}
	return nil
}
