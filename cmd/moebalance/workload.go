package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// perfectRouterVariable is the switch of the treatment, "1" and nothing else,
// as TensorRT-LLM reads it.
const perfectRouterVariable = "ENABLE_PERFECT_ROUTER"

type workloadOptions struct {
	Experts int     `flag:"experts"`
	Layers  int     `flag:"layers"`
	Ranks   int     `flag:"ranks"`
	Tokens  int     `flag:"tokens"`
	Steps   int     `flag:"steps"`
	Skew    float64 `flag:"skew"`
	Seed    uint64  `flag:"seed"`
	Serve   string  `flag:"serve"`
	URL     string  `flag:"url"`
}

func workloadCmd() *cobra.Command {
	o := workloadOptions{Experts: 32, Layers: 4, Ranks: 4, Tokens: 128, Steps: 16, Skew: 1.5}
	return verb("workload", none, &o, func(c *cobra.Command, _ []string) error {
		config, err := o.config()
		switch {
		case err != nil:
		case o.URL != "":
			err = workload.Ask(c.Context(), o.URL, o.Steps, o.Seed, c.OutOrStdout())
		default:
			err = o.run(c.Context(), config, os.Getenv(perfectRouterVariable) == "1", c.OutOrStdout(), c.ErrOrStderr())
		}
		if err != nil {
			return fmt.Errorf("workload: %w", err)
		}
		return nil
	})
}

// config is the workload that the flags describe; a bad flag is found before any work is done.
func (o *workloadOptions) config() (workload.Config, error) {
	c := workload.Config{Gate: router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: o.Experts, TopK: 4}},
		Layers: o.Layers, Ranks: o.Ranks, Tokens: o.Tokens, Skew: o.Skew, Seed: o.Seed}
	for flag, address := range map[string]string{"serve": o.Serve, "url": o.URL} {
		if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
			return c, usagef("--%s: want HOST:PORT, such as localhost:8000, have %q", flag, address)
		}
	}
	if o.Steps < 1 || o.Steps > 1<<20 {
		return c, usagef("want steps between 1 and %d, have %d", 1<<20, o.Steps)
	}
	return c, withCode(exitUsage, c.Validate())
}

func (o *workloadOptions) run(ctx context.Context, config workload.Config, perfect bool, stdout, stderr io.Writer) error {
	engine, err := workload.New(config)
	if err != nil {
		return err
	}
	var rows [][]float32
	if perfect || o.Serve != "" {
		if rows, err = config.BalancedRows(); err != nil {
			return err
		}
	}
	if perfect {
		engine.Balance(rows)
	}
	counts := os.Getenv("MOEBALANCE_COUNTS") // the folder that bench names for its launch
	if o.Serve != "" {
		return engine.Follow(ctx, o.Serve, rows, counts)
	}
	for rank := range rows {
		fmt.Fprintf(stderr, "perfect router: rank %d of %d routes %s by balanced logits\n", rank, o.Ranks,
			quantity.Count(o.Tokens, "token"))
	}
	res, err := engine.Run(ctx, 2, o.Steps, 0)
	if err != nil {
		return err
	}
	if err := engine.WriteCounts(counts, ""); err != nil {
		return fmt.Errorf("writing expert counts: %w", err)
	}
	return json.NewEncoder(stdout).Encode(res)
}
