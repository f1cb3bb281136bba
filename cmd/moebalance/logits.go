package main

import (
	"context"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// verifyOptions and listOptions are of verbs that read a cache folder.
type (
	verifyOptions struct{ resultFlags }
	listOptions   struct{ resultFlags }
)

func (o *verifyOptions) answer(c call) (d document, err error) {
	v, err := readCache(c, c.args[0], logits.Verify)
	if err != nil {
		return d, err
	}
	return render.VerifiedCache(c.args[0], v), withCode(exitGate, v.Err())
}

func (o *listOptions) answer(c call) (d document, err error) {
	v, err := readCache(c, c.args[0], logits.List)
	if err != nil {
		return d, err
	}
	return render.ListedCache(c.args[0], v), nil
}

func readCache(c call, dir string, read func(context.Context, string,
	func(done, total int)) (logits.Verification, error)) (logits.Verification, error) {
	entries, done := c.entries()
	defer done()
	return read(c.Context(), dir, entries)
}

// planning are the flags of the verbs that lay plans out.
type planning struct {
	Mode router.Mode `flag:"mode" preset:"dep"`
	Seed uint64      `flag:"seed"`
}

// check finds plans that are not known, and a seed that no plan uses.
func (p *planning) check(c call, flag string, known []string, plans ...string) error {
	for _, name := range plans {
		if !slices.Contains(known, name) {
			return usagef("%s: want %s, have %q%s", flag, strings.Join(known, ", "), name, router.Near(name, known))
		}
	}
	if c.given("seed") && !slices.ContainsFunc(plans, plan.Seeded) {
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
