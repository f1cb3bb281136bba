package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

func logitsCmd() *cobra.Command {
	c := verb("logits", cobra.ArbitraryArgs, nil, noVerb)
	c.AddCommand(logitsGenerateCmd(), logitsVerifyCmd(), logitsListCmd(), logitsPlansCmd())
	return c
}

func logitsVerifyCmd() *cobra.Command {
	return cacheCmd("logits-verify", logits.Verify, render.VerifiedCache, logits.Verification.Err)
}

func logitsListCmd() *cobra.Command {
	return cacheCmd("logits-list", logits.List, render.ListedCache, func(logits.Verification) error { return nil })
}

// cacheCmd is a verb that reads a cache folder, shows it and judges it.
func cacheCmd(file string, read func(context.Context, string, func(done, total int)) (logits.Verification, error),
	show func(dir string, v logits.Verification) output.Document, judge func(logits.Verification) error) *cobra.Command {
	o := newResult()
	c := verb(file, argCount(1, 1, "one cache folder"), &o, func(c *cobra.Command, args []string) error {
		progress, stop := showEntries(c.ErrOrStderr())
		v, err := read(c.Context(), args[0], progress)
		stop()
		if err != nil {
			return err
		}
		return cmp.Or(o.write(c, show(args[0], v)), withCode(exitGate, judge(v)))
	})
	return tabled(c, show("", logits.Verification{}).TableNames()...)
}

// planning are the flags of the verbs that lay plans out.
type planning struct {
	Mode flags.Value[router.Mode] `flag:"mode"`
	Seed uint64                   `flag:"seed"`
}

func newPlanning() planning {
	return planning{Mode: flags.Read(router.ParseMode, string(router.DEP))}
}

// check finds plans that are not known, and a seed that no plan uses.
func (p *planning) check(c *cobra.Command, flag string, known []string, plans ...string) error {
	for _, name := range plans {
		if !slices.Contains(known, name) {
			return usagef("%s: want %s, have %q%s", flag, strings.Join(known, ", "), name, router.Near(name, known))
		}
	}
	if c.Flags().Changed("seed") && !slices.ContainsFunc(plans, plan.Seeded) {
		seeded := slices.DeleteFunc(slices.Clone(known), func(n string) bool { return !plan.Seeded(n) })
		return usagef("--seed is for %s %s, have %s", flag, strings.Join(seeded, ", "), strings.Join(plans, ", "))
	}
	return nil
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

// showEntries shows on a terminal how many entries are done; stop takes the line away.
func showEntries(stderr io.Writer) (show func(done, total int), stop func()) {
	line := progress.New(stderr)
	return func(done, total int) {
		line.Show("%d of %d entries", done, total)
	}, line.Clear
}
