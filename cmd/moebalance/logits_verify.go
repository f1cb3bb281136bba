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
		Short: "check every entry by routing it; exit 3 if one fails",
		Long: `verify reads back every entry of a cache folder and checks that it is whole and
undamaged, that its name matches its content, that the plan it names makes the same
experts, and that the model's routing method, computed exactly for every token,
picks these experts with equal weights.

The balance is over all ranks together. max/mean is the largest load over the
mean load, over experts and over ranks; the floor is the least that indivisible
slots allow. Active experts are those with any token, beside the most that so many
slots can activate. A batch size that lacks the entries of some ranks fails.

Exit 3 if an entry fails, 1 if the folder cannot be read.`,
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
	v, err := logits.Verify(c.Context(), dir, show)
	stop()
	if err != nil {
		return err
	}
	if err := out.write(c, render.VerifiedCache(dir, v)); err != nil {
		return err
	}
	return verdict(v)
}

// verdict is nil when every entry is what it says, and names the first that is not.
func verdict(v logits.Verification) error {
	failed, first := 0, ""
	for _, e := range v.Entries {
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
	return withCode(exitGate, fmt.Errorf("logits verify: %d of %s failed; run 'moebalance logits generate' again to replace damaged entries and add missing ones, and remove other files; the first: %s", failed, quantity.Count(len(v.Entries), "entry"), first))
}
