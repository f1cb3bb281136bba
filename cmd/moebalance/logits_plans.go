package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

type plansOptions struct {
	gate   gateFlags
	seed   uint64
	ranks  []int
	tokens []int
	layer  int
	plans  []string
	out    resultFlags
}

// mostSlots is the largest problem that is counted, 512 MiB of receiver conflicts.
const mostSlots = 1 << 28

// allPlans are ours and those of engines.
func allPlans() []string { return slices.Concat(plan.Names(), plan.Peers()) }

func logitsPlansCmd() *cobra.Command {
	var o plansOptions
	c := command("logits-plans", argCount(0, 0, "flags only"), o.run)
	f := c.Flags()
	o.gate.bindModel(c)
	o.gate.bindRanks(c)
	flags.Numbers(c, &o.ranks, "ep", "8", "numbers of expert-parallel ranks")
	bindTokens(c, &o.tokens, "1-64,128,256,512,1024,4096,8192")
	f.IntVar(&o.layer, "layer", 0, "layer, for plans that depend on it")
	f.StringSliceVar(&o.plans, "plans", []string{"trtllm-gen1", "trtllm-gen2", "diagonal"},
		"plans: "+strings.Join(allPlans(), ", "))
	bindSeed(f, &o.seed)
	flags.Complete(c, "plans", allPlans()...)
	o.out.bind(c, render.Plans{}.Document().TableNames)
	return c
}

func (o *plansOptions) check(c *cobra.Command) error {
	if err := cmp.Or(o.gate.Check(), checkTokens(o.tokens, mostSlots)); err != nil {
		return err
	}
	switch {
	case o.layer < 0:
		return usagef("--layer: want 0 or more, have %d", o.layer)
	case o.gate.Placement != "" && c.Flags().Changed("ep"):
		return usagef("want --ep or --placement, which has its own number of ranks")
	}
	return checkPlans(c.Flags(), "--plans", allPlans(), o.plans...)
}

func (o *plansOptions) run(c *cobra.Command, _ []string) error {
	if err := o.check(c); err != nil {
		return err
	}
	name, gate, _, err := o.gate.Read()
	if err != nil {
		return err
	}
	result := render.Plans{
		SchemaVersion: 1, Kind: "logits plans",
		Model: name, Method: gate.Method, Shape: gate.Shape, Mode: o.gate.mode, Layer: o.layer,
		Plans: []plan.Case{},
	}
	problems, err := o.problems(gate.Shape)
	if err != nil {
		return err
	}
	for _, p := range problems {
		if err := countable(p); err != nil {
			return err
		}
	}
	options := plan.Options{Seed: o.seed, Method: gate.Method}
	for _, p := range problems {
		for _, name := range o.plans {
			if c.Context().Err() != nil {
				return context.Cause(c.Context())
			}
			result.Plans = append(result.Plans, plan.CaseOf(name, p, options))
		}
	}
	result.Spans = plan.Spans(result.Plans, problems)
	return o.out.write(c, result.Document())
}

// problems are what the plans have to solve: every batch size on every number of ranks.
func (o *plansOptions) problems(shape router.Shape) (list []plan.Problem, err error) {
	ranks := o.ranks
	if o.gate.Placement != "" {
		ranks = []int{0} // the file's
	}
	for _, n := range ranks {
		layout, err := o.gate.Layout(shape.Experts, n)
		if err != nil {
			return nil, err
		}
		for _, t := range o.tokens {
			list = append(list, plan.Problem{Shape: shape, Layout: layout, Mode: o.gate.mode, Layer: o.layer,
				Tokens: slices.Repeat([]int{t}, layout.Ranks())})
		}
	}
	return list, nil
}

// countable is an error for a problem that contradicts itself, is empty or is too large.
func countable(p plan.Problem) error {
	if err := p.Validate(); err != nil {
		return withCode(exitUsage, err)
	}
	if slots := slices.Max(p.Tokens) * p.Shape.TopK * p.Layout.Ranks(); slots < 1 || slots > mostSlots {
		return usagef("--tokens: want 1 to %d slots (tokens × top-k × ranks) in a batch, have %d", mostSlots,
			slots)
	}
	return nil
}
