package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// perfectRouterVariable is the switch of the treatment, "1" and nothing else,
// as TensorRT-LLM reads it.
const perfectRouterVariable = "ENABLE_PERFECT_ROUTER"

type workloadOptions struct {
	workload.Config
	placement string // contiguous, or a file
	cache     target.Folder
	stats     target.Folder
}

func workloadCmd() *cobra.Command {
	o := workloadOptions{}
	o.Gate.Method = router.Renormalize
	c := command("workload", argCount(0, 0, "no arguments"), func(c *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return o.run(c.Context(), os.Getenv(perfectRouterVariable) == "1", c.OutOrStdout(), c.ErrOrStderr())
	})
	o.bind(c)
	return c
}

func (o *workloadOptions) bind(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.Gate.Shape.Experts, "experts", 32, "routed experts of a layer")
	f.IntVar(&o.Gate.Shape.TopK, "top-k", 4, "experts per token")
	f.IntVar(&o.Hidden, "hidden", 128, "hidden size")
	f.IntVar(&o.Intermediate, "intermediate", 256, "intermediate size of an expert")
	f.IntVar(&o.Layers, "layers", 4, "mixture-of-experts layers")
	f.IntVar(&o.Ranks, "ranks", 4, "expert-parallel ranks")
	f.IntVar(&o.Tokens, "tokens", 128, "tokens per rank and step")
	f.IntVar(&o.Steps, "steps", 16, "timed steps")
	f.IntVar(&o.Warmup, "warmup", 2, "untimed steps before the timed steps")
	f.Float64Var(&o.Skew, "skew", 1.5,
		"skew of the gate: the i-th expert is selected in proportion to (1+i)^-skew; 0: even")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of weights and tokens")
	f.StringVar(&o.placement, "placement", workload.Contiguous,
		"placement of the experts: contiguous, or a `FILE` that 'moebalance place' wrote without redundant experts")
	o.cache.Store = cacheStore
	o.cache.Bind(c, "cache", "", "cache `DIR` of the balanced logits (default: temporary)")
	o.stats.Bind(c, "stats", "",
		"write the expert counts of every timed step to this `DIR`, in the TensorRT-LLM format")
}

// check finds a bad flag before any work is done.
func (o *workloadOptions) check() error {
	// Files of another launch's ranks would be counted as this one's.
	if entries, err := os.ReadDir(o.stats.Path); err == nil && len(entries) > 0 {
		return usagef("workload: --stats: want a new or empty folder, have %s in %q",
			quantity.Count(len(entries), "entry"), o.stats.Path)
	}
	if err := o.place(); err != nil {
		return err
	}
	if err := o.Config.Validate(); err != nil {
		return withCode(exitUsage, fmt.Errorf("workload: %w", err))
	}
	return nil
}

// place reads the placement of the experts.
func (o *workloadOptions) place() error {
	if o.Placement = filepath.Base(o.placement); o.placement == workload.Contiguous {
		return nil
	}
	file, err := counts.ReadPlacement(o.placement, o.Ranks)
	if err != nil {
		return fmt.Errorf("--placement: %w", err)
	}
	for layer := range o.Layers {
		layout, err := file.Layout(layer)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("--placement: %w", err))
		}
		o.Layouts = append(o.Layouts, layout)
	}
	return nil
}

func (o *workloadOptions) run(ctx context.Context, perfect bool, stdout, stderr io.Writer) (err error) {
	o.Record = o.stats.Path != ""
	if perfect {
		if o.cache.Path == "" {
			if o.cache.Path, err = os.MkdirTemp("", "moebalance-logits-*"); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(o.cache.Path)) }()
		}
		if o.Balanced, err = o.balanced(stderr); err != nil {
			return fmt.Errorf("workload: %w", err)
		}
	}
	res, err := workload.Run(ctx, o.Config)
	if err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	if o.stats.Path != "" {
		if err := res.WriteStatistics(o.stats.Write); err != nil {
			return fmt.Errorf("workload: writing expert counts: %w", err)
		}
	}
	fmt.Fprintln(stderr, summary(res))
	return json.NewEncoder(stdout).Encode(res)
}

// balanced returns the rows that a rank routes by in place of its gate's, and
// says on stderr, rank by rank, that it did: the proof that the treatment
// arrived.
func (o *workloadOptions) balanced(stderr io.Writer) (func(int) ([]float32, error), error) {
	layout, err := router.Contiguous(o.Gate.Shape.Experts, o.Ranks)
	if err != nil {
		return nil, err
	}
	cache, err := logits.Open(o.cache.Path, logits.Spec{Model: "workload", Gate: o.Gate, Layout: layout,
		Mode: router.DEP})
	if err != nil {
		return nil, fmt.Errorf("balanced logits: %w", err)
	}
	return func(rank int) ([]float32, error) {
		entry, err := cache.Get(rank, o.Tokens)
		if err != nil {
			return nil, fmt.Errorf("balanced logits of rank %d: %w", rank, err)
		}
		rows := make([]float32, 0, o.Tokens*o.Gate.Shape.Experts)
		var row []float32
		for t := range o.Tokens {
			row = entry.Row(row, t)
			rows = append(rows, row...)
		}
		fmt.Fprintf(stderr, "perfect router: rank %d of %d routes %s by balanced logits\n", rank, o.Ranks,
			quantity.Count(o.Tokens, "token"))
		return rows, nil
	}, nil
}

// summary is the JSON line in a sentence.
func summary(res workload.Result) string {
	ratios := make([]float64, len(res.RankMaxOverMean))
	for i, v := range res.RankMaxOverMean {
		ratios[i] = float64(v)
	}
	arm := "normal"
	if res.PerfectRouter {
		arm = "perfect"
	}
	return fmt.Sprintf("%s router, %s, %s with %s each: %.0f tokens/s, %s per step (%s clock); rank load max/mean %s, longest wait of a rank %s per step",
		arm, res.Shape, quantity.Count(res.Ranks, "rank"), quantity.Count(res.TokensPerRank, "token"),
		res.TokensPerSecond, quantity.Duration(1e6*res.StepMS),
		res.Clock, quantity.Ratio(stat.Mean(ratios, nil)), quantity.Duration(1e6*slices.Max(res.ExpertsWaitMS)))
}
