package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

// planFlags name a router, the ranks that hold its experts, and what is planned for them.
type planFlags struct {
	Model     string        `flag:"model"`
	Method    router.Method `flag:"method"`
	Placement string        `flag:"placement"`
	Ranks     int           `flag:"ep"`
	Tokens    []int         `flag:"tokens"`
	Mode      router.Mode   `flag:"mode" preset:"dep"`
	Seed      uint64        `flag:"seed"`
}

// read reads the router, with its model, and the layout of its experts: contiguous on the ranks, or as the file says.
func (p *planFlags) read() (m router.Model, gate router.Gate, layout router.Layout, err error) {
	switch {
	case slices.Contains(p.Tokens, 0):
		err = usagef("--tokens: want at least 1 token per rank, have 0")
	case p.Model == "":
		err = usagef("want --model: a preset, a config.json, or experts and top-k such as e256k8")
	case p.Placement != "" && p.Ranks != 0:
		err = usagef("want --ep or --placement, which has its own number of ranks")
	case p.Placement == "" && p.Ranks < 1:
		err = usagef("want --ep with at least 1 rank, or --placement")
	default:
		m, err = router.ReadModel(p.Model, p.Method)
	}
	gate = router.Gate{Method: cmp.Or(p.Method, m.Method), Shape: m.Shape, Scale: m.Scale}
	if err = cmp.Or(err, usage(gate.Validate())); err != nil {
		return m, gate, layout, err
	}
	if p.Placement == "" {
		layout, err = router.Contiguous(m.Experts, p.Ranks)
		return m, gate, layout, usage(err)
	}
	if layout, err = router.ReadLayout(p.Placement, m.Experts); err != nil {
		err = fmt.Errorf("--placement: %w", err)
	}
	return m, gate, layout, err
}

type plansOptions struct {
	planFlags
	Plans string `flag:"plans" preset:"trtllm-gen1,trtllm-gen2,diagonal"`
	resultFlags
}

// mostSlots is the most slots of a batch that are counted.
const mostSlots = 1 << 28

func (o *plansOptions) answer(c call) (d document, err error) {
	plans := strings.Split(o.Plans, ",")
	for _, name := range plans {
		if all := slices.Concat(plan.Names(), plan.Peers()); !slices.Contains(all, name) {
			return d, usagef("--plans: want %s, have %q%s", strings.Join(all, ", "), name, router.Near(name, all))
		}
	}
	if o.Placement == "" {
		o.Ranks = cmp.Or(o.Ranks, 8)
	}
	if len(o.Tokens) == 0 {
		o.Tokens, _ = input.Numbers("1-64,128,256,512,1024,4096,8192")
	}
	m, gate, layout, err := o.read()
	if err != nil {
		return d, err
	}
	if most := mostSlots / gate.Shape.TopK / layout.Ranks(); slices.Max(o.Tokens) > most {
		return d, usagef("--tokens: want 1 to %d tokens per rank of this model, have %d", most, slices.Max(o.Tokens))
	}
	result := render.Plans{SchemaVersion: 1, Kind: "logits plans", Model: m.Name, Method: gate.Method, Shape: gate.Shape,
		Mode: o.Mode, Spans: make([]plan.Span, len(plans))}
	for _, t := range o.Tokens {
		p := plan.Problem{Shape: gate.Shape, Layout: layout, Mode: o.Mode, Tokens: slices.Repeat([]int{t}, layout.Ranks())}
		for i, name := range plans {
			if c.Context().Err() != nil {
				return d, context.Cause(c.Context())
			}
			of := plan.CaseOf(name, p, plan.Options{Seed: o.Seed, Method: gate.Method})
			result.Spans[i].Add(of, p)
			result.Plans = append(result.Plans, of)
		}
	}
	return result.Document(), nil
}
