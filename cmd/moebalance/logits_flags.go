package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/router"
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

func bindTokens(c *cobra.Command, tokens *[]int, preset string) {
	flags.Numbers(c, tokens, "tokens", preset, "batch sizes in tokens per rank")
}

// checkTokens compares the numbers of tokens with the most a rank may have.
func checkTokens(tokens []int, most int) error {
	for _, n := range tokens {
		if n < 1 || n > most {
			return usagef("--tokens: want 1 to %d tokens per rank, have %d", most, n)
		}
	}
	return nil
}
