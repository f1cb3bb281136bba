package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/router/quantity"
)

type datasetOptions struct {
	bench.Dataset
	file target.File
}

func datasetCmd() *cobra.Command {
	var o datasetOptions
	c := &cobra.Command{
		Use:   "dataset",
		Short: "write a synthetic request file, the same on every machine",
		Long: `dataset writes the synthetic requests of the TensorRT-LLM documents
(token-norm-dist): input and output lengths from normal distributions, cut to at
least one token, and random token ids. The same flags give the same bytes on
every machine; stderr says their SHA-256. Each line is one request as
trtllm-bench reads it: {"task_id":0,"input_ids":[…],"output_tokens":128}.

Random prompts spread over the experts unlike real text: a gain measured on them
need not be that of real traffic.`,
		Example: `  moebalance bench dataset --num-requests 1000 --input-mean 1024 --output-mean 128 -o data.jsonl
  moebalance bench dataset --num-requests 2 --input-mean 4 --output-mean 2`,
		Args: argCount(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.IntVar(&o.Requests, "num-requests", 1000, "requests")
	f.Float64Var(&o.InputMean, "input-mean", 1024, "mean length of a prompt, tokens")
	f.Float64Var(&o.InputSD, "input-stdev", 0, "its standard deviation")
	f.Float64Var(&o.OutputMean, "output-mean", 128, "mean number of tokens to generate")
	f.Float64Var(&o.OutputSD, "output-stdev", 0, "its standard deviation")
	f.IntVar(&o.LowID, "first-id", 1000, "lowest token id to draw")
	f.IntVar(&o.HighID, "last-id", 30000, "token ids stay below this; at most the model's vocabulary")
	f.Uint64Var(&o.Seed, "seed", 1, "of lengths and ids")
	o.file.Bind(c, "output", "o", "write to this `FILE` instead of stdout")
	return c
}

func (o *datasetOptions) run(c *cobra.Command) error {
	if err := o.Check(); err != nil {
		return withCode(exitUsage, fmt.Errorf("bench dataset: %w", err))
	}
	var sum bench.Summary
	write := func(w io.Writer) (err error) {
		sum, err = o.Write(w)
		return err
	}
	var err error
	if o.file.Path == "" {
		err = write(c.OutOrStdout())
	} else {
		err = o.file.Write(write)
	}
	if err != nil {
		return fmt.Errorf("bench dataset: %w", err)
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s, %d input and %s, %s, sha256 %s\n",
		quantity.Count(sum.Requests, "request"), sum.InputTokens, quantity.Count(sum.OutputTokens, "output token"), quantity.Count(sum.Bytes, "byte"), sum.SHA256)
	return nil
}
