package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/compare/bench/dataset"
	"github.com/moebalance/moebalance/router/quantity"
)

type datasetOptions struct {
	Requests   int     `flag:"num-requests" preset:"1000"`
	InputMean  float64 `flag:"input-mean" preset:"1024"`
	InputSD    float64 `flag:"input-stdev"`
	OutputMean float64 `flag:"output-mean" preset:"128"`
	OutputSD   float64 `flag:"output-stdev"`
	Seed       uint64  `flag:"seed" preset:"1"`
	outputFlag
}

func datasetCmd() *cobra.Command {
	var o datasetOptions
	return verb("bench-dataset", argCount(0, 0, "no arguments"), &o, o.run)
}

// firstID and lastID bound the token ids: behind special ones, and in every vocabulary.
const firstID, lastID = 1000, 30000

func (o *datasetOptions) run(c *cobra.Command, _ []string) error {
	spec := dataset.Spec{Requests: o.Requests, InputMean: o.InputMean, InputSD: o.InputSD, OutputMean: o.OutputMean,
		OutputSD: o.OutputSD, LowID: firstID, HighID: lastID, Seed: o.Seed}
	if err := spec.Check(); err != nil {
		return usage(err)
	}
	var sum dataset.Summary
	write := func(w io.Writer) (err error) {
		sum, err = spec.Write(w)
		return err
	}
	if err := o.File.WriteOr(c.OutOrStdout(), write); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s, %d input and %s, %s, sha256 %s\n",
		quantity.Count(sum.Requests, "request"), sum.InputTokens, quantity.Count(sum.OutputTokens, "output token"),
		quantity.Count(sum.Bytes, "byte"), sum.SHA256)
	return nil
}
