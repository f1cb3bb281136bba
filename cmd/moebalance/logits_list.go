package main

import (
	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/logits"
)

func logitsListCmd() *cobra.Command {
	var out resultFlags
	c := &cobra.Command{
		Use:   "list FOLDER",
		Short: "list a cache folder: sizes and balance",
		Long: `list reads the metadata and experts of the entries of a cache folder, but not
their logits, and shows size and balance per batch size. It checks nothing else:
use verify for that. The balance is over all ranks together, beside the floor that
indivisible slots allow; it is undefined while ranks are missing.`,
		Example: `  moebalance logits list /tmp/logits
  moebalance logits list --format csv /tmp/logits`,
		Args: argCount(1, 1, "one cache folder"),
		RunE: func(c *cobra.Command, args []string) error { return listCache(c, args[0], &out) },
	}
	out.bind(c)
	return c
}

func listCache(c *cobra.Command, dir string, out *resultFlags) error {
	if err := out.check(); err != nil {
		return err
	}
	show, stop := showEntries(c.ErrOrStderr())
	v, err := logits.List(c.Context(), dir, show)
	stop()
	if err != nil {
		return err
	}
	return out.write(c, render.ListedCache(dir, v))
}
