package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/logits"
)

func logitsVerifyCmd() *cobra.Command {
	return cacheCmd(command("logits-verify", nil, nil), logits.Verify, render.VerifiedCache, logits.Verification.Err)
}

func logitsListCmd() *cobra.Command {
	return cacheCmd(command("logits-list", nil, nil), logits.List, render.ListedCache,
		func(logits.Verification) error { return nil })
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
		return cmp.Or(out.write(c, show(args[0], v)), withCode(exitGate, judge(v)))
	}
	return c
}
