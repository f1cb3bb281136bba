package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

type plansOptions struct {
	gate  gateFlags
	knobs planFlags
	ranks []int
	batch batchFlags
	layer int
	plans []string
	out   resultFlags
}

// mostSlots is the largest problem that is counted, 512 MiB of receiver conflicts.
const mostSlots = 1 << 28

func logitsPlansCmd() *cobra.Command {
	var o plansOptions
	c := &cobra.Command{
		Use:   "plans --model NAME --ep RANKS",
		Short: "balance of the plans: ours against the reference",
		Long: `plans reports the balance of each plan for one layer, over all ranks together, beside
the floors that no assignment can beat. Nothing is measured or written.

rank and expert max/mean are the largest load over the mean load. The floors are the
best values that whole slots allow; ranks come first, so the expert floor assumes that
no rank gets more slots than the busiest rank of the plan. active experts are those with any token,
beside the largest possible number; a plan that activates fewer reads fewer weights
than balanced traffic would, which makes its decode time too short. pair excess is the
number of slots by which the busiest target of a source rank exceeds an even spread.
receiver conflict is the largest number of ranks that send to one rank in the same
step; 1 is best, tep has none.

A plan is optimal if ranks, experts, pairs and active experts are all at their floors;
with replicas, copies of experts count instead of experts. A plan is invalid if a
token gets an expert twice or experts of more groups than the method allows, or if
ranks route shared tokens differently.`,
		Example: `  moebalance logits plans --model deepseek-v3 --ep 4,8,16 --tokens 1,8,64
  moebalance logits plans --model gpt-oss-120b --ep 8 --plans diagonal,uniform --seed 7
  moebalance logits plans --model deepseek-v3 --unequal 9,2,0,5,5,1,3,7 --plans trtllm-gen2,diagonal
  moebalance logits plans --experts 60 --top-k 4 --ep 8 --tokens 3 --plans diagonal --format json`,
		Args: argCount(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	o.gate.bindModel(c)
	o.gate.bindRanks(c)
	f.IntSliceVar(&o.ranks, "ep", []int{8}, "numbers of expert-parallel ranks")
	o.batch.bind(f, []int{1, 8, 64})
	f.IntVar(&o.layer, "layer", 0, "layer, for plans that depend on it")
	f.StringSliceVar(&o.plans, "plans", []string{"trtllm-gen1", "trtllm-gen2", "diagonal"}, "plans: "+strings.Join(plan.Names(), ", "))
	o.knobs.bind(f)
	o.out.bind(c)
	return c
}

func (o *plansOptions) check() error {
	if err := cmp.Or(o.gate.checkModel(), o.batch.check(mostSlots)); err != nil {
		return err
	}
	switch {
	case o.layer < 0:
		return usagef("--layer: want 0 or more, have %d", o.layer)
	case o.gate.placement != "" && o.batch.given("ep"):
		return usagef("want --ep or --placement, which has its own number of ranks")
	}
	return o.knobs.check("--plans", o.plans...)
}

func (o *plansOptions) run(c *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	name, gate, _, err := o.gate.gate()
	if err != nil {
		return err
	}
	knobs, err := o.knobs.options()
	if err != nil {
		return err
	}
	knobs.Method = gate.Method
	result := render.Plans{
		SchemaVersion: 1, Kind: "logits plans",
		Model: name, Method: gate.Method, Shape: gate.Shape, Mode: o.gate.mode, Layer: o.layer, Plans: []render.PlannedCase{},
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
	for _, p := range problems {
		for _, plan := range o.plans {
			if c.Context().Err() != nil {
				return context.Cause(c.Context())
			}
			result.Plans = append(result.Plans, planCase(plan, p, knobs))
		}
	}
	result.EveryTokens = o.everyTokens(problems)
	return o.out.write(c, result.Document())
}

// everyTokens certifies the plans that are one table for any number of tokens, once
// for each number of ranks, where the table has a period that proves it.
func (o *plansOptions) everyTokens(problems []plan.Problem) (list []render.EveryTokens) {
	for _, name := range o.plans {
		ranks := 0
		for _, p := range problems {
			if p.Layout.Ranks() == ranks || !plan.AnyTokens(name) || plan.NewTable(p).Period() == 0 {
				continue
			}
			ranks = p.Layout.Ranks()
			if proof := plan.Prove(p); proof.Level {
				list = append(list, render.EveryTokens{Name: name, Ranks: ranks, Proof: proof})
			}
		}
	}
	return list
}

// problems are what the plans have to solve: the batches whose ranks differ, or
// every batch size on every number of ranks.
func (o *plansOptions) problems(shape router.Shape) (list []plan.Problem, err error) {
	for _, each := range o.batch.unequal {
		layout, err := o.gate.layout(shape.Experts, len(each))
		if err != nil {
			return nil, err
		}
		list = append(list, o.problem(shape, layout, each))
	}
	if len(list) > 0 {
		return list, nil
	}
	ranks := o.ranks
	if o.gate.placement != "" {
		ranks = []int{0} // the file's
	}
	for _, n := range ranks {
		layout, err := o.gate.layout(shape.Experts, n)
		if err != nil {
			return nil, err
		}
		for _, t := range o.batch.tokens {
			list = append(list, o.problem(shape, layout, slices.Repeat([]int{t}, layout.Ranks())))
		}
	}
	return list, nil
}

func (o *plansOptions) problem(shape router.Shape, layout router.Layout, tokens []int) plan.Problem {
	return plan.Problem{Shape: shape, Layout: layout, Mode: o.gate.mode, Layer: o.layer, Tokens: tokens}
}

// countable is an error for a problem that contradicts itself or is too large.
func countable(p plan.Problem) error {
	if err := p.Validate(); err != nil {
		return withCode(exitUsage, err)
	}
	if slots := slices.Max(p.Tokens) * p.Shape.TopK * p.Layout.Ranks(); slots > mostSlots {
		return usagef("want at most %d slots (tokens × top-k × ranks), have %d: these are more than can be counted", mostSlots, slots)
	}
	return nil
}

func planCase(name string, p plan.Problem, knobs plan.Options) render.PlannedCase {
	row := render.PlannedCase{Name: name, Ranks: p.Layout.Ranks(), TokensPerRank: router.Number(p.Tokens[0])}
	if slices.Min(p.Tokens) != slices.Max(p.Tokens) {
		row.TokensPerRank, row.TokensOfRanks = router.Undefined(), p.Tokens
	}
	made, err := plan.New(name, p, knobs)
	if err == nil {
		var certificate plan.Certificate
		if certificate, err = plan.Certify(p, made); err == nil {
			row.Certificate = &certificate
			return row
		}
	}
	row.Refused = err.Error()
	return row
}
