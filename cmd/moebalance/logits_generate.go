package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

type generateOptions struct {
	gate   gateFlags
	cache  target.Folder
	tokens []int
	ranks  []int
	dtype  logits.DType
	plan   string
	target float64
	follow string
	seed   uint64
	layer  int
	out    resultFlags
}

func logitsGenerateCmd() *cobra.Command {
	var o generateOptions
	c := command("logits-generate", argCount(0, 0, "flags only"), o.run)
	f := c.Flags()
	o.gate.bind(c)
	o.cache.Keeps = true
	o.cache.Bind(c, "cache", "", "cache `FOLDER`, created if missing")
	bindTokens(c, &o.tokens, "")
	flags.Numbers(c, &o.ranks, "rank", "", "ranks to write entries for (default all)")
	flags.Parsed(c, &o.dtype, logits.ParseDType, "dtype", "",
		"float32, bfloat16 or float16 (default: what engines use for the model)", logits.DTypes...)
	f.StringVar(&o.plan, "plan", plan.Names()[0], "assignment of slots to experts: "+strings.Join(plan.Names(), ", "))
	f.Float64Var(&o.target, "target", 0,
		"draw experts so that the busiest rank gets this many times the mean, such as 1.2, instead of --plan")
	f.StringVar(&o.follow, "recorded", "",
		"draw experts as often as this `FILE` counts them, {\"logical_count\": [[…], …]} by layer, instead of --plan")
	bindSeed(f, &o.seed)
	f.IntVar(&o.layer, "layer", 0, "layer; shifts the plan so that remainders do not accumulate")
	o.out.bind(c, func() []string { return []string{"entries"} })
	flags.Complete(c, "plan", plan.Names()...)
	return c
}

func (o *generateOptions) check(c *cobra.Command) error {
	drawn := c.Flags().Changed("target") || o.follow != ""
	switch {
	case drawn && (len(o.tokens) > 0 || c.Flags().Changed("plan") || c.Flags().Changed("target") && o.follow != ""):
		return usagef("want one of --plan, --target and --recorded; the drawn ones serve any number of tokens, without " +
			"--tokens")
	case c.Flags().Changed("target"):
		if o.plan = plan.Target(o.target); !(o.target >= 1) {
			return usagef("--target: want a max/mean over ranks of at least 1, have %v", o.target)
		}
		fallthrough
	case drawn:
		o.tokens = []int{logits.AnyTokens}
	case len(o.tokens) > 0:
		if err := checkTokens(o.tokens, logits.MaxTokens); err != nil {
			return err
		}
	case plan.AnyTokens(o.plan):
		o.tokens = []int{logits.AnyTokens}
	default:
		o.tokens = logits.CommonTokens()
	}
	if err := o.gate.check(); err != nil {
		return err
	}
	switch {
	case o.cache.Path == "":
		return usagef("want --cache, the folder to keep entries in")
	case o.layer < 0:
		return usagef("--layer: want 0 or more, have %d", o.layer)
	}
	if drawn {
		return nil
	}
	return checkPlans(c.Flags(), "--plan", plan.Names(), o.plan)
}

func (o *generateOptions) run(c *cobra.Command, _ []string) error {
	if err := o.check(c); err != nil {
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
	if o.follow != "" {
		text, err := input.ReadFile(o.follow, mostCounts)
		if err != nil {
			return err
		}
		if o.plan, err = cache.Follow(text); err != nil {
			return err
		}
	}
	list, err := o.fill(c, cache, ranks, slices.Compact(slices.Sorted(slices.Values(o.tokens))))
	if err != nil {
		return err
	}
	return o.out.write(c, render.GeneratedEntries(o.cache.Path, cache.Spec(), len(ranks), list))
}

// mostCounts is the most bytes of a file of recorded counts.
const mostCounts = 1 << 24

func (o *generateOptions) fill(c *cobra.Command, cache *logits.Cache, ranks, tokens []int) ([]logits.Outcome, error) {
	show, stop := showEntries(c.ErrOrStderr())
	defer stop()
	done, total := 0, len(ranks)*len(tokens)
	list, err := cache.Fill(c.Context(), o.plan, ranks, tokens, func(logits.Outcome) {
		done++
		show(done, total)
	})
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("logits generate: interrupted after %d of %d entries; run it again to continue", done,
			total)
	}
	return list, err
}

// spec is what the flags describe.
func (o *generateOptions) spec() (logits.Spec, error) {
	name, gate, stored, err := o.gate.Read()
	if err != nil {
		return logits.Spec{}, err
	}
	layout, err := o.gate.Layout(gate.Shape.Experts, o.gate.ranks)
	if err != nil {
		return logits.Spec{}, err
	}
	dtype := o.dtype
	if dtype == "" {
		dtype = logits.Float32
		if stored == "bf16" {
			dtype = logits.BFloat16
		}
	}
	return logits.Spec{
		Model: name, Gate: gate, Layout: layout, Mode: o.gate.mode, Layer: o.layer, Seed: o.seed, DType: dtype,
	}, nil
}
