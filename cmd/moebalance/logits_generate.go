package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

type generateOptions struct {
	gate    gateFlags
	cache   target.Folder
	batch   batchFlags
	ranks   []int
	dtype   string
	plan    string
	knobs   planFlags
	layer   int
	idsOnly bool
	out     resultFlags
}

func logitsGenerateCmd() *cobra.Command {
	var o generateOptions
	c := &cobra.Command{
		Use:   "generate --model NAME --ep RANKS --cache DIR",
		Short: "make balanced logits, adding what is missing and replacing what is damaged",
		Long: `generate plans balanced routing and writes it as router logits, one safetensors
file per rank and batch size, into the folder --cache. What is there already
stays as long as every byte is as it would be written; what is damaged is replaced,
and named, so that a bad disk does not go unnoticed. Without --tokens it makes the
22 batch sizes that engines prepare, from 1 to 8192 tokens per rank. --unequal
names the tokens of each rank instead: such ranks are balanced together, so their
entries are for that very batch and no other, and a rank without tokens gets an
entry of no rows.

The experts of a token get the logit 32, all others -32: the router picks exactly
the planned ones, with equal weights, in every element type. A correction bias is
survived as long as its spread (largest minus smallest value over the experts)
stays below the margin that is printed; --bias reads the model's own and settles
the matter: an entry is exact, or projected where the bias outweighs the logits
(it then holds what the router picks), or infeasible where no logits could help,
because a sigmoid adds at most 1.`,
		Example: `  moebalance logits generate --model gpt-oss-120b --ep 8 --cache /tmp/logits
  moebalance logits generate --model deepseek-v3 --ep 8 --tokens 1,8,64 --dtype bfloat16 --cache /tmp/logits
  moebalance logits generate --model deepseek-v3 --unequal 64,61,0,64 --unequal 63,61,2,64 --cache /tmp/logits
  moebalance logits generate --experts 64 --top-k 6 --ep 4 --mode tep --ids-only --cache /tmp/logits`,
		Args: argCount(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	o.gate.bind(f)
	o.cache.Store = cacheStore
	o.cache.Bind(c, "cache", "the `FOLDER` that holds the entries; made if absent")
	o.batch.bind(f, logits.CommonTokens())
	f.IntSliceVar(&o.ranks, "rank", nil, "make the entries of these ranks alone (default all)")
	f.StringVar(&o.dtype, "dtype", "", "float32, bfloat16 or float16 (default what the model's engines use)")
	f.StringVar(&o.plan, "plan", plan.Names()[0], "how slots are assigned to experts: "+strings.Join(plan.Names(), ", "))
	o.knobs.bind(f)
	f.IntVar(&o.layer, "layer", 0, "shift the plan as for this layer, so that remainders do not pile up")
	f.BoolVar(&o.idsOnly, "ids-only", false, "keep expert_ids alone, without logits")
	o.out.bind(c)
	for flag, values := range map[string][]string{
		"mode": {string(router.DEP), string(router.TEP)}, "dtype": logits.DTypes, "plan": plan.Names(),
	} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return c
}

func (o *generateOptions) check() error {
	if err := cmp.Or(o.batch.check(logits.MaxTokens), o.gate.check(), o.out.check()); err != nil {
		return err
	}
	if o.dtype != "" {
		if _, err := logits.ParseDType(o.dtype); err != nil {
			return withCode(exitUsage, fmt.Errorf("--dtype: %w", err))
		}
	}
	switch {
	case o.cache.Path == "":
		return usagef("want --cache, the folder to keep entries in")
	case o.layer < 0:
		return usagef("--layer: want 0 or more, have %d", o.layer)
	}
	return o.knobs.check("--plan", o.plan)
}

func (o *generateOptions) run(c *cobra.Command) error {
	if len(o.batch.unequal) > 0 && o.gate.placement == "" {
		o.gate.ranks = len(o.batch.unequal[0]) // in place of --ep
	}
	if err := o.check(); err != nil {
		return err
	}
	spec, err := o.spec()
	if err != nil {
		return err
	}
	ranks, last := o.ranks, spec.Layout.Ranks()-1
	if len(ranks) == 0 {
		for r := range last + 1 {
			ranks = append(ranks, r)
		}
	}
	ranks = slices.Compact(slices.Sorted(slices.Values(ranks)))
	if ranks[0] < 0 || ranks[len(ranks)-1] > last {
		return usagef("--rank: want ranks from 0 to %d, have %v", last, ranks)
	}
	cache, err := logits.Open(o.cache.Path, spec)
	if err != nil {
		return err
	}
	list, err := fillCache(c, cache, ranks, o.batches())
	if err != nil {
		return err
	}
	return o.out.write(c, render.GeneratedEntries(o.cache.Path, cache.Spec(), len(ranks), list))
}

// batches are those that the flags name, each once.
func (o *generateOptions) batches() (list []logits.Batch) {
	if len(o.batch.unequal) > 0 {
		for _, each := range o.batch.unequal {
			list = append(list, logits.Unequal(each...))
		}
		return list
	}
	for _, t := range slices.Compact(slices.Sorted(slices.Values(o.batch.tokens))) {
		list = append(list, logits.Equal(t))
	}
	return list
}

func fillCache(c *cobra.Command, cache *logits.Cache, ranks []int, batches []logits.Batch) ([]logits.Outcome, error) {
	show, stop := showEntries(c.ErrOrStderr())
	defer stop()
	done, total := 0, len(ranks)*len(batches)
	list, err := cache.Fill(c.Context(), ranks, batches, func(logits.Outcome) {
		done++
		show(done, total)
	})
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("logits generate: interrupted after %d of %d entries; run it again to go on", done, total)
	}
	return list, err
}

// spec is what the flags describe.
func (o *generateOptions) spec() (logits.Spec, error) {
	name, gate, stored, err := o.gate.gate()
	if err != nil {
		return logits.Spec{}, err
	}
	layout, err := o.gate.layout(gate.Shape.Experts, o.gate.ranks)
	if err != nil {
		return logits.Spec{}, err
	}
	knobs, err := o.knobs.options()
	if err != nil {
		return logits.Spec{}, err
	}
	dtype := logits.DType(o.dtype)
	if dtype == "" {
		dtype = logits.Float32
		if stored == "bf16" {
			dtype = logits.BFloat16
		}
	}
	return logits.Spec{
		Model: name, Gate: gate, Layout: layout, Mode: router.Mode(o.gate.mode), Layer: o.layer,
		Plan: o.plan, Knobs: knobs, DType: dtype, IDsOnly: o.idsOnly,
	}, nil
}
