package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench/dataset"
	"github.com/moebalance/moebalance/router/quantity"
)

type datasetOptions struct {
	dataset.Spec
	file target.File
}

func datasetCmd() *cobra.Command {
	var o datasetOptions
	c := command("bench-dataset", argCount(0, 0, "no arguments"), o.run)
	f := c.Flags()
	f.IntVar(&o.Requests, "num-requests", 1000, "number of requests")
	f.Float64Var(&o.InputMean, "input-mean", 1024, "mean prompt length in tokens")
	f.Float64Var(&o.InputSD, "input-stdev", 0, "standard deviation of the prompt length")
	f.Float64Var(&o.OutputMean, "output-mean", 128, "mean output length in tokens")
	f.Float64Var(&o.OutputSD, "output-stdev", 0, "standard deviation of the output length")
	f.IntVar(&o.LowID, "first-id", 1000, "lowest token id")
	f.IntVar(&o.HighID, "last-id", 30000, "upper bound of the token ids, exclusive; at most the vocabulary size")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of lengths and ids")
	o.file.Bind(c, "output", "o", "write to this `FILE` instead of stdout")
	return c
}

func (o *datasetOptions) run(c *cobra.Command, _ []string) error {
	if err := o.Check(); err != nil {
		return withCode(exitUsage, fmt.Errorf("bench dataset: %w", err))
	}
	var sum dataset.Summary
	write := func(w io.Writer) (err error) {
		sum, err = o.Write(w)
		return err
	}
	if err := o.file.WriteOr(c.OutOrStdout(), write); err != nil {
		return fmt.Errorf("bench dataset: %w", err)
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s, %d input and %s, %s, sha256 %s\n",
		quantity.Count(sum.Requests, "request"), sum.InputTokens, quantity.Count(sum.OutputTokens, "output token"),
		quantity.Count(sum.Bytes, "byte"), sum.SHA256)
	return nil
}
