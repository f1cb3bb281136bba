package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/quantity"
)

func logitsVerifyCmd() *cobra.Command {
	return cacheCmd(command("logits-verify", nil, nil), logits.Verify, render.VerifiedCache, verdict)
}

func logitsListCmd() *cobra.Command {
	return cacheCmd(command("logits-list", nil, nil), logits.List, render.ListedCache,
		func(logits.Verification) error { return nil })
}

func logitsSchemaCmd() *cobra.Command {
	return command("logits-schema", argCount(0, 0, "no argument"), func(c *cobra.Command, _ []string) error {
		_, err := io.WriteString(c.OutOrStdout(), logits.Schema)
		return err
	})
}

// cacheCmd is a verb that reads a cache folder, shows it and judges it.
func cacheCmd(c *cobra.Command, read func(context.Context, string, func(done, total int)) (logits.Verification, error),
	show func(dir string, v logits.Verification) output.Document,
	judge func(logits.Verification) error) *cobra.Command {
	var out resultFlags
	out.bind(c, func() []string { return show("", logits.Verification{}).TableNames() })
	c.Args = argCount(1, 1, "one cache folder")
	c.RunE = func(c *cobra.Command, args []string) error {
		progress, stop := showEntries(c.ErrOrStderr())
		v, err := read(c.Context(), args[0], progress)
		stop()
		if err != nil {
			return err
		}
		return cmp.Or(out.write(c, show(args[0], v)), judge(v))
	}
	return c
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
	return withCode(exitGate,
		fmt.Errorf("logits verify: %d of %s failed; run 'moebalance logits generate' again to replace damaged entries and "+
			"add missing ones, and remove other files; the first: %s", failed, quantity.Count(len(v.Entries), "entry"), first))
}
