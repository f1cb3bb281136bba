package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// perfectRouterVariable is the switch of the treatment, "1" and nothing else,
// as TensorRT-LLM reads it.
const perfectRouterVariable = "ENABLE_PERFECT_ROUTER"

type workloadOptions struct {
	workload.Config
	steps int
	stats target.Folder
	serve string
	url   string
}

func workloadCmd() *cobra.Command {
	o := workloadOptions{}
	o.Gate.Method, o.Gate.Shape.TopK = router.Renormalize, 4
	c := command("workload", argCount(0, 0, "no arguments"), func(c *cobra.Command, _ []string) error {
		err := o.check()
		switch {
		case err != nil:
		case o.url != "":
			err = workload.Ask(c.Context(), o.url, o.steps, o.Seed, c.OutOrStdout())
		default:
			err = o.run(c.Context(), os.Getenv(perfectRouterVariable) == "1", c.OutOrStdout(), c.ErrOrStderr())
		}
		if err != nil {
			return fmt.Errorf("workload: %w", err)
		}
		return nil
	})
	o.bind(c)
	return c
}

func (o *workloadOptions) bind(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.Gate.Shape.Experts, "experts", 32, "routed experts of a layer, of which each token chooses 4")
	f.IntVar(&o.Hidden, "hidden", 128, "hidden size")
	f.IntVar(&o.Layers, "layers", 4, "mixture-of-experts layers")
	f.IntVar(&o.Ranks, "ranks", 4, "expert-parallel ranks")
	f.IntVar(&o.Tokens, "tokens", 128, "tokens per rank and step")
	f.IntVar(&o.steps, "steps", 16, "timed steps")
	f.Float64Var(&o.Skew, "skew", 1.5,
		"skew of the gate: the i-th expert is selected in proportion to (1+i)^-skew; 0: even")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of weights and tokens; with --url, of the tokens")
	o.stats.Bind(c, "stats", "",
		"write the expert counts of every step to this `DIR`, in the TensorRT-LLM format")
	f.StringVar(&o.serve, "serve", "",
		"`HOST:PORT`: serve runs here, /health when ready, and follow MOEBALANCE_CONTROL")
	f.StringVar(&o.url, "url", "", "`HOST:PORT`: measure --steps of the workload served here")
}

// check finds a bad flag before any work is done.
func (o *workloadOptions) check() error {
	// Files of another launch's ranks would be counted as this one's.
	if err := o.stats.CheckEmpty(); err != nil {
		return err
	}
	for flag, address := range map[string]string{"serve": o.serve, "url": o.url} {
		if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
			return usagef("--%s: want HOST:PORT, such as localhost:8000, have %q", flag, address)
		}
	}
	if o.steps < 1 || o.steps > 1<<20 {
		return usagef("want steps between 1 and %d, have %d", 1<<20, o.steps)
	}
	o.Intermediate = 2 * o.Hidden
	return withCode(exitUsage, o.Config.Validate())
}

func (o *workloadOptions) run(ctx context.Context, perfect bool, stdout, stderr io.Writer) error {
	engine, err := workload.New(o.Config)
	if err != nil {
		return err
	}
	var rows [][]float32
	if perfect || o.serve != "" {
		if rows, err = o.BalancedRows(); err != nil {
			return err
		}
	}
	if perfect {
		engine.Balance(rows)
	}
	if o.serve != "" {
		return engine.Follow(ctx, o.serve, rows, func(sequence int) error {
			return o.writeCounts(engine, fmt.Sprintf("sequence%d", sequence))
		})
	}
	for rank := range rows {
		fmt.Fprintf(stderr, "perfect router: rank %d of %d routes %s by balanced logits\n", rank, o.Ranks,
			quantity.Count(o.Tokens, "token"))
	}
	res, err := engine.Run(ctx, 2, o.steps, 0)
	if err != nil {
		return err
	}
	if err := o.writeCounts(engine, ""); err != nil {
		return err
	}
	fmt.Fprintln(stderr, res)
	return json.NewEncoder(stdout).Encode(res)
}

// writeCounts writes the expert counts since the last call to a folder below that of --stats, or
// below the one that bench names for its launch.
func (o *workloadOptions) writeCounts(engine *workload.Engine, below string) error {
	write := func(name string, render func(io.Writer) error) error {
		return o.stats.Write(filepath.Join(below, name), render)
	}
	if folder := os.Getenv("MOEBALANCE_COUNTS"); o.stats.Path == "" {
		if folder == "" {
			return nil
		}
		write = func(name string, render func(io.Writer) error) error {
			path := filepath.Join(folder, below, name)
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), target.WriteOwn(path, render))
		}
	}
	if err := engine.WriteStatistics(write); err != nil {
		return fmt.Errorf("writing expert counts: %w", err)
	}
	return nil
}
