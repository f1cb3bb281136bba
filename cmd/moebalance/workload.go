package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// perfectRouterVariable is the switch of the treatment, "1" and nothing else,
// as TensorRT-LLM reads it.
const perfectRouterVariable = "ENABLE_PERFECT_ROUTER"

type workloadOptions struct {
	workload.Config
	method string
	cache  target.Folder
	stats  target.Folder
}

func workloadCmd() *cobra.Command {
	o := workloadOptions{}
	c := &cobra.Command{
		Use:   "workload",
		Short: "the built-in expert-parallel model, a benchmark for CPUs",
		Long: `workload runs a small mixture-of-experts model on CPU cores, expert-parallel: the
ranks route their own tokens with a learned, skewed gate, exchange them, run the
experts they own and meet at a barrier after each phase, so the busiest rank
decides the time of a step. It is a benchmark to try moebalance on.

With ` + perfectRouterVariable + `=1 in the environment the gate is still computed and its
logits are then replaced by balanced ones, read from --cache, or made and kept
there when it has none of this shape.

The result is one line of JSON on stdout: tokens_per_second over all ranks,
iteration_ms of every timed step, expert_max_over_mean and rank_max_over_mean per
layer (mean over the timed steps), and the time each rank worked and waited. A
summary for people goes to stderr. The same seed gives the same routing.

A rank stands for a processor of its own. By --clock cpu, the default on Linux,
each phase takes the measured processor time of the rank that used most: what the
wall clock would show if every rank had a core to itself. --clock wall needs that
to be so: ranks that share a core, or lose it to other programs, lend each other
their waiting time, and imbalance then costs less than it would.`,
		Example: `  moebalance workload
  ` + perfectRouterVariable + `=1 moebalance workload
  moebalance bench --pairs 6 -- moebalance workload --skew 0.5`,
		Args: argCount(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(c.Context(), os.Getenv(perfectRouterVariable) == "1", c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	o.bind(c)
	return c
}

func (o *workloadOptions) bind(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.Gate.Shape.Experts, "experts", 32, "routed experts of a layer")
	f.IntVar(&o.Gate.Shape.TopK, "top-k", 4, "experts per token")
	f.IntVar(&o.Gate.Shape.Groups, "groups", 1, "groups of experts; 1 for none")
	f.IntVar(&o.Gate.Shape.TopKGroups, "topk-groups", 1, "groups one token may use")
	f.StringVar(&o.method, "method", string(router.Renormalize), "routing method, by TensorRT-LLM's name")
	_ = c.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(methodNames(), cobra.ShellCompDirectiveNoFileComp))
	f.IntVar(&o.Hidden, "hidden", 128, "width of a hidden state")
	f.IntVar(&o.Intermediate, "intermediate", 256, "width inside an expert")
	f.StringVar(&o.Activation, "activation", workload.SwiGLU, "of the experts: "+strings.Join(workload.Activations, " or "))
	f.IntVar(&o.Layers, "layers", 4, "mixture-of-experts layers")
	f.IntVar(&o.Ranks, "ranks", 0, "expert-parallel ranks; 0 for 4, or by the wall clock one per core, between 2 and 4")
	f.StringVar(&o.Clock, "clock", workload.DefaultClock(), "time of a step: cpu (of the rank that used most, phase by phase) or wall (needs a free core per rank)")
	f.IntVar(&o.Tokens, "tokens", 128, "tokens per rank in a step")
	f.IntVar(&o.Steps, "steps", 16, "timed steps")
	f.IntVar(&o.Warmup, "warmup", 2, "steps before them that are not timed")
	f.Float64Var(&o.Skew, "skew", 1.5, "how uneven the gate is: the i-th expert is chosen about (1+i)^-skew as often; 0 for even")
	f.Uint64Var(&o.Seed, "seed", 0, "of the weights and the tokens")
	o.cache.Store = cacheStore
	o.cache.Bind(c, "cache", "keep the balanced logits in this `DIR`; without it they are made for each launch")
	o.stats.Bind(c, "stats", "write the expert counts of every timed step into this `DIR`, as TensorRT-LLM's expert statistics")
	_ = c.RegisterFlagCompletionFunc("clock", cobra.FixedCompletions(workload.Clocks, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("activation", cobra.FixedCompletions(workload.Activations, cobra.ShellCompDirectiveNoFileComp))
}

func methodNames() []string {
	var names []string
	for _, m := range router.Methods() {
		names = append(names, string(m))
	}
	return names
}

// check finds a bad flag before any work is done.
func (o *workloadOptions) check() error {
	if o.Ranks == 0 {
		o.Ranks = 4
		if o.Clock == workload.Wall {
			o.Ranks = min(4, max(2, runtime.GOMAXPROCS(0)))
		}
	}
	method, err := router.ParseMethod(o.method)
	if err != nil {
		return withCode(exitUsage, fmt.Errorf("workload: --method: %w", err))
	}
	o.Gate.Method = method
	// Files of another launch's ranks would be counted as this one's.
	if entries, err := os.ReadDir(o.stats.Path); err == nil && len(entries) > 0 {
		return usagef("workload: --stats: want a new or empty folder, found %s in %q", quantity.Count(len(entries), "entry"), o.stats.Path)
	}
	if err := o.Config.Validate(); err != nil {
		return withCode(exitUsage, fmt.Errorf("workload: %w", err))
	}
	return nil
}

func (o *workloadOptions) run(ctx context.Context, perfect bool, stdout, stderr io.Writer) (err error) {
	began := time.Now()
	o.Now = func() time.Duration { return time.Since(began) }
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
	fmt.Fprintln(stderr, summarise(res))
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
	cache, err := logits.Open(o.cache.Path, logits.Spec{Model: "workload", Gate: o.Gate, Layout: layout, Mode: router.DEP})
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
		fmt.Fprintf(stderr, "perfect router: rank %d of %d routes %s by balanced logits\n", rank, o.Ranks, quantity.Count(o.Tokens, "token"))
		return rows, nil
	}, nil
}

// summarise says in words what the JSON line holds.
func summarise(res workload.Result) string {
	arm := "normal"
	if res.PerfectRouter {
		arm = "perfect"
	}
	waited := slices.Max(res.ExpertsWaitMS)
	text := fmt.Sprintf("%s router, %s, %s of %s: %.0f tokens/s, %.1f ms per step by the %s clock; busiest rank %.3f times the mean load, the idlest waited %.1f ms for it",
		arm, res.Shape, quantity.Count(res.Ranks, "rank"), quantity.Count(res.TokensPerRank, "token"), res.TokensPerSecond, res.StepMS, res.Clock, meanRatio(res), waited)
	if res.Clock == workload.Wall && res.RanksPerCore > 1 {
		text += fmt.Sprintf("\n%d ranks share %.0f cores: imbalance costs less here than with a core for each rank", res.Ranks, float64(res.Ranks)/res.RanksPerCore)
	}
	return text
}

// meanRatio is the mean over the layers of the busiest rank's load over the mean.
func meanRatio(res workload.Result) float64 {
	var sum float64
	for _, v := range res.RankMaxOverMean {
		sum += float64(v)
	}
	return sum / float64(len(res.RankMaxOverMean))
}
