package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/router/plan"
)

type plansOptions struct {
	gateFlags
	Ranks  flags.Value[[]int]    `flag:"ep"`
	Tokens flags.Value[[]int]    `flag:"tokens"`
	Plans  flags.Value[[]string] `flag:"plans"`
	planning
	resultFlags
}

// mostSlots is the largest problem that is counted.
const mostSlots = 1 << 28

// allPlans are ours and the engines' own.
func allPlans() []string { return slices.Concat(plan.Names(), plan.Peers()) }

func logitsPlansCmd() *cobra.Command {
	split := func(text string) ([]string, error) { return strings.Split(text, ","), nil }
	o := plansOptions{gateFlags: newGate(), Ranks: flags.Numbers("8"),
		Tokens: flags.Numbers("1-64,128,256,512,1024,4096,8192"),
		Plans:  flags.Read(split, "trtllm-gen1,trtllm-gen2,diagonal"), planning: newPlanning(),
		resultFlags: newResult()}
	c := verb("logits-plans", argCount(0, 0, "flags only"), &o, o.run)
	c.Flags().Lookup("plans").Usage += " " + strings.Join(allPlans(), ", ")
	return tabled(c, render.Plans{}.Document().TableNames()...)
}

func (o *plansOptions) run(c *cobra.Command, _ []string) error {
	if o.Placement != "" && c.Flags().Changed("ep") {
		return usagef("want --ep or --placement, which has its own number of ranks")
	}
	m, gate, err := o.gate()
	if err := cmp.Or(err, checkTokens(o.Tokens.Is, mostSlots),
		o.planning.check(c, "--plans", allPlans(), o.Plans.Is...)); err != nil {
		return err
	}
	result := render.Plans{
		SchemaVersion: 1, Kind: "logits plans",
		Model: m.Name, Method: gate.Method, Shape: gate.Shape, Mode: o.Mode.Is,
		Plans: []plan.Case{},
	}
	ranks := o.Ranks.Is
	if o.Placement != "" {
		ranks = []int{0} // the file's
	}
	for _, n := range ranks {
		layout, err := o.layout(gate.Shape.Experts, n)
		if err != nil {
			return err
		}
		if slots := slices.Max(o.Tokens.Is) * gate.Shape.TopK * layout.Ranks(); slots > mostSlots {
			return usagef("--tokens: want 1 to %d slots (tokens × top-k × ranks) in a batch, have %d", mostSlots, slots)
		}
		spans := make([]plan.Span, len(o.Plans.Is))
		for _, t := range o.Tokens.Is {
			p := plan.Problem{Shape: gate.Shape, Layout: layout, Mode: o.Mode.Is,
				Tokens: slices.Repeat([]int{t}, layout.Ranks())}
			for i, name := range o.Plans.Is {
				if c.Context().Err() != nil {
					return context.Cause(c.Context())
				}
				of := plan.CaseOf(name, p, plan.Options{Seed: o.Seed, Method: gate.Method})
				spans[i].Add(of, p)
				result.Plans = append(result.Plans, of)
			}
		}
		result.Spans = append(result.Spans, spans...)
	}
	return o.write(c, result.Document())
}
