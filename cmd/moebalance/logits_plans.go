package main

import (
	"context"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

type plansOptions struct {
	planFlags
	Plans string `flag:"plans" preset:"trtllm-gen1,trtllm-gen2,diagonal"`
	resultFlags
}

// mostSlots is the largest problem that is counted.
const mostSlots = 1 << 28

// allPlans are ours and the engines' own.
func allPlans() []string { return slices.Concat(plan.Names(), plan.Peers()) }

func (o *plansOptions) answer(c call) (d document, err error) {
	plans := strings.Split(o.Plans, ",")
	if o.Placement == "" && len(o.Ranks) == 0 {
		o.Ranks = []int{8}
	}
	if len(o.Tokens) == 0 {
		o.Tokens, _ = input.Numbers("1-64,128,256,512,1024,4096,8192")
	}
	if err := o.check(c, mostSlots, "--plans", allPlans(), plans...); err != nil {
		return d, err
	}
	m, gate, layouts, err := o.read()
	if err != nil {
		return d, err
	}
	result := render.Plans{
		SchemaVersion: 1, Kind: "logits plans",
		Model: m.Name, Method: gate.Method, Shape: gate.Shape, Mode: o.Mode,
		Plans: []plan.Case{},
	}
	for _, layout := range layouts {
		if slots := slices.Max(o.Tokens) * gate.Shape.TopK * layout.Ranks(); slots > mostSlots {
			return d, usagef("--tokens: want 1 to %d slots (tokens × top-k × ranks) in a batch, have %d", mostSlots, slots)
		}
		spans := make([]plan.Span, len(plans))
		for _, t := range o.Tokens {
			p := plan.Problem{Shape: gate.Shape, Layout: layout, Mode: o.Mode,
				Tokens: slices.Repeat([]int{t}, layout.Ranks())}
			for i, name := range plans {
				if c.Context().Err() != nil {
					return d, context.Cause(c.Context())
				}
				of := plan.CaseOf(name, p, plan.Options{Seed: o.Seed, Method: gate.Method})
				spans[i].Add(of, p)
				result.Plans = append(result.Plans, of)
			}
		}
		result.Spans = append(result.Spans, spans...)
	}
	return result.Document(), nil
}
