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

func (o *datasetOptions) run(c *cobra.Command, _ []string) error {
	spec := dataset.Spec{Requests: o.Requests, InputMean: o.InputMean, InputSD: o.InputSD, OutputMean: o.OutputMean,
		OutputSD: o.OutputSD, Seed: o.Seed}
	if err := spec.Check(); err != nil {
		return usage(err)
	}
	input, output := 0, 0
	write := func(w io.Writer) (err error) {
		input, output, err = spec.Write(w)
		return err
	}
	if err := o.File.WriteOr(c.OutOrStdout(), write); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s, %d input and %s\n", quantity.Count(o.Requests, "request"), input,
		quantity.Count(output, "output token"))
	return nil
}
