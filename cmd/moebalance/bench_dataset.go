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
		Short: "write a synthetic request file, identical on every machine",
		Long: `dataset writes synthetic requests as in the TensorRT-LLM documentation
(token-norm-dist): input and output lengths from normal distributions, at least one
token each, and random token ids. The same flags give the same bytes on every machine;
stderr shows their SHA-256. Each line is a request in the format of trtllm-bench:
{"task_id":0,"input_ids":[…],"output_tokens":128}.

Random prompts are not distributed over experts as real text is. A gain measured with
them may differ from that of real traffic.`,
		Example: `  moebalance bench dataset --num-requests 1000 --input-mean 1024 --output-mean 128 -o data.jsonl
  moebalance bench dataset --num-requests 2 --input-mean 4 --output-mean 2`,
		Args: argCount(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
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
