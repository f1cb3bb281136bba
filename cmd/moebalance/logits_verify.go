package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/quantity"
)

func logitsVerifyCmd() *cobra.Command {
	var out resultFlags
	c := &cobra.Command{
		Use:   "verify FOLDER",
		Short: "prove every entry by routing it; exit 3 if one fails",
		Long: `verify reads back every entry of a cache folder and proves that it is what it
says: whole, undamaged, under the name that its content has, as the plan it names
would make it, and routed by the exact mathematics of the model's method, token
by token, to the experts it promises with equal weights.

The balance is over all ranks together. max/mean is the largest load over the
mean load, over experts and over ranks; the floor is the least that indivisible
slots allow; active experts are those with any token, beside the most that so
many slots can touch. A batch size that lacks the entries of some ranks fails.

Exits 3 when an entry fails, 1 when the folder cannot be read.`,
		Example: `  moebalance logits verify /tmp/logits
  moebalance logits verify --format json /tmp/logits`,
		Args: argCount(1, 1, "one cache folder"),
		RunE: func(c *cobra.Command, args []string) error { return verifyCache(c, args[0], &out) },
	}
	out.bind(c)
	return c
}

func verifyCache(c *cobra.Command, dir string, out *resultFlags) error {
	if err := out.check(); err != nil {
		return err
	}
	show, stop := showEntries(c.ErrOrStderr())
	survey, err := logits.Verify(c.Context(), dir, show)
	stop()
	if err != nil {
		return err
	}
	if err := out.write(c, render.VerifiedCache(dir, survey)); err != nil {
		return err
	}
	return verdict(survey)
}

// verdict is nil when every entry is what it says, and names the first that is not.
func verdict(s logits.Survey) error {
	failed, first := 0, ""
	for _, e := range s.Entries {
		if e.Err == nil {
			continue
		}
		if failed++; failed == 1 {
			first = fmt.Sprintf("%q: %s", e.Path, e.Fault())
		}
	}
	if failed == 0 {
		return nil
	}
	return withCode(exitGate, fmt.Errorf("logits verify: %d of %s failed; 'moebalance logits generate', run as it was, replaces damaged entries and adds missing ones, other files are to be removed; the first: %s", failed, quantity.Count(len(s.Entries), "entry"), first))
}
