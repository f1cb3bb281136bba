package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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

// cacheOptions are the flags of a verb that reads a cache folder, shows it and judges it.
type cacheOptions struct {
	resultFlags
	read  func(context.Context, string, func(done, total int)) (logits.Verification, error)
	shown func(dir string, v logits.Verification) output.Document
	judge func(logits.Verification) error
}

func logitsVerifyCmd() *cobra.Command {
	return cacheCmd("logits-verify", &cacheOptions{read: logits.Verify, shown: render.VerifiedCache,
		judge: logits.Verification.Err})
}

func logitsListCmd() *cobra.Command {
	return cacheCmd("logits-list", &cacheOptions{read: logits.List, shown: render.ListedCache,
		judge: func(logits.Verification) error { return nil }})
}

func cacheCmd(file string, o *cacheOptions) *cobra.Command {
	return answers(file, argCount(1, 1, "one cache folder"), o, o.shown("", logits.Verification{}).TableNames()...)
}

func (o *cacheOptions) answer(c *cobra.Command, args []string) (output.Document, error) {
	progress, stop := showEntries(c.ErrOrStderr())
	v, err := o.read(c.Context(), args[0], progress)
	stop()
	if err != nil {
		return output.Document{}, err
	}
	return o.shown(args[0], v), withCode(exitGate, o.judge(v))
}

// planning are the flags of the verbs that lay plans out.
type planning struct {
	Mode router.Mode `flag:"mode" preset:"dep"`
	Seed uint64      `flag:"seed"`
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
