package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/router"
)

type plansOptions struct {
	gate   gateFlags
	knobs  planFlags
	ranks  []int
	tokens []int
	plans  []string
	out    resultFlags
}

func logitsPlansCmd() *cobra.Command {
	var o plansOptions
	c := &cobra.Command{
		Use:   "plans --model NAME --ep RANKS",
		Short: "reference plans against ours, counted",
		Long: `plans counts what each plan does to one layer, over all ranks together, beside
the floors that no assignment can beat. Nothing is measured and nothing written.

rank and expert max/mean are the largest load over the mean load. Their floors
are what indivisible slots allow; ranks come first, so where ranks hold unequally
many experts the floor of experts is that of plans whose ranks are even. active
experts are those with any token, beside the most that so many slots can touch:
a plan that touches fewer reads fewer weights than balanced traffic would, which
makes its decode time too good. pair off is by how many slots the worst row of
(source, target) rank pairs is above its own floor. receiver conflict is the most
senders that send to one rank in the same step; 1 is best, and tep has none.
optimal says that everything but conflicts is at its floor.`,
		Example: `  moebalance logits plans --model deepseek-v3 --ep 4,8,16 --tokens 1,8,64
  moebalance logits plans --model gpt-oss-120b --ep 8 --plans diagonal,uniform --seed 7
  moebalance logits plans --experts 60 --top-k 4 --ep 8 --tokens 3 --plans diagonal --format json`,
		Args: argCount(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	o.gate.bindModel(f)
	f.IntSliceVar(&o.ranks, "ep", []int{8}, "expert-parallel ranks, one or several numbers")
	f.IntSliceVar(&o.tokens, "tokens", []int{1, 8, 64}, "tokens per rank, one or several numbers")
	f.StringVar(&o.gate.mode, "mode", string(router.DEP), "dep: each rank has its own tokens; tep: all ranks hold the same")
	f.StringSliceVar(&o.plans, "plans", []string{"trtllm-gen1", "trtllm-gen2", "diagonal"}, "which plans: "+strings.Join(router.PlanNames(), ", "))
	o.knobs.bindKnobs(f)
	o.out.bind(c)
	return c
}

func (o *plansOptions) check() error {
	if err := o.out.check(); err != nil {
		return err
	}
	if err := o.gate.checkModel(); err != nil {
		return err
	}
	if _, err := router.ParseMode(o.gate.mode); err != nil {
		return withCode(exitUsage, err)
	}
	for _, t := range o.tokens {
		if t < 0 {
			return usagef("--tokens: want 0 or more tokens per rank, have %d", t)
		}
	}
	for _, name := range o.plans {
		if !slices.Contains(router.PlanNames(), name) {
			return usagef("--plans: want %s, have %q", strings.Join(router.PlanNames(), ", "), name)
		}
	}
	if slices.Contains(o.plans, "replay") != (o.knobs.counts != "") {
		return usagef("--plans replay and --counts go together")
	}
	return nil
}

// plansResult is the JSON of logits plans.
type plansResult struct {
	SchemaVersion int           `json:"schema_version"`
	Kind          string        `json:"kind"` // always "logits plans"
	Model         string        `json:"model"`
	Method        router.Method `json:"method"`
	Shape         router.Shape  `json:"shape"`
	Mode          router.Mode   `json:"mode"`
	Plans         []plannedCase `json:"plans"`
}

// plannedCase is one plan for one problem.
type plannedCase struct {
	Name          string              `json:"name"`
	Ranks         int                 `json:"ranks"`
	TokensPerRank int                 `json:"tokens_per_rank"`
	Certificate   *router.Certificate `json:"certificate"`       // null when the plan refuses
	Refused       string              `json:"refused,omitempty"` // why
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
	result := plansResult{
		SchemaVersion: 1, Kind: "logits plans",
		Model: name, Method: gate.Method, Shape: gate.Shape, Mode: router.Mode(o.gate.mode), Plans: []plannedCase{},
	}
	for _, ranks := range o.ranks {
		layout, err := router.Contiguous(gate.Shape.Experts, ranks)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("--ep: %w", err))
		}
		for _, tokens := range o.tokens {
			p := router.Problem{Shape: gate.Shape, Layout: layout, Mode: result.Mode, Tokens: slices.Repeat([]int{tokens}, ranks)}
			for _, plan := range o.plans {
				if err := c.Context().Err(); err != nil {
					return err
				}
				result.Plans = append(result.Plans, planCase(plan, p, knobs))
			}
		}
	}
	return o.out.write(c, plansDocument(result, shapeText(gate)))
}

func planCase(name string, p router.Problem, knobs router.PlanOptions) plannedCase {
	row := plannedCase{Name: name, Ranks: p.Layout.Ranks(), TokensPerRank: p.Tokens[0]}
	plan, err := router.NewPlan(name, p, knobs)
	if err == nil {
		var certificate router.Certificate
		if certificate, err = router.Certify(p, plan); err == nil {
			row.Certificate = &certificate
			return row
		}
	}
	row.Refused = err.Error()
	return row
}

func plansDocument(result plansResult, shape string) output.Document {
	t := output.Table{Name: "plans", Columns: []output.Column{
		{Name: "ranks", Kind: output.Count}, {Name: "tokens/rank", Key: "tokens_per_rank", Kind: output.Count}, {Name: "plan"},
		{Name: "rank max/mean", Key: "rank_max_over_mean", Kind: output.Ratio}, {Name: "floor", Key: "rank_floor", Kind: output.Ratio},
		{Name: "expert max/mean", Key: "expert_max_over_mean", Kind: output.Ratio}, {Name: "floor", Key: "expert_floor", Kind: output.Ratio},
		{Name: "active experts", Key: "active_experts", Kind: output.Count}, {Name: "possible", Key: "active_experts_ideal", Kind: output.Count},
		{Name: "pair off", Key: "pair_excess_slots", Kind: output.Count},
		{Name: "receiver conflict", Key: "receiver_conflict", Kind: output.Count}, {Name: "optimal"},
	}}
	d := output.Document{Value: result}
	optimal, names := map[string]int{}, []string{}
	cases := map[string]int{}
	for _, row := range result.Plans {
		if cases[row.Name]++; cases[row.Name] == 1 {
			names = append(names, row.Name)
		}
		cells := make([]any, len(t.Columns))
		cells[0], cells[1], cells[2] = row.Ranks, row.TokensPerRank, row.Name
		if c := row.Certificate; c == nil {
			if note := row.Refused; !slices.Contains(d.Notes, note) {
				d.Notes = append(d.Notes, note)
			}
		} else {
			copy(cells[3:], certificateCells(*c))
			if c.Optimal {
				optimal[row.Name]++
			}
			if note := fault(row.Name, *c); note != "" && !slices.Contains(d.Notes, note) {
				d.Notes = append(d.Notes, note)
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s optimal in %d of %d cases", name, optimal[name], cases[name]))
	}
	d.Headline = fmt.Sprintf("%s (%s), %s: %s", result.Model, shape, result.Mode, strings.Join(parts, ", "))
	d.Tables = []output.Table{t}
	return d
}

// certificateCells are the columns from rank max/mean on. A dispatch that does
// not happen has no conflict.
func certificateCells(c router.Certificate) []any {
	var pair, conflict any
	if c.PairSource >= 0 {
		pair, conflict = c.Pair.Excess, c.ReceiverConflict
	}
	return []any{
		c.Rank.MaxOverMean, c.Rank.FloorOverMean, c.Expert.MaxOverMean, c.Expert.FloorOverMean,
		c.ActiveExperts, c.ActiveExpertsIdeal, pair, conflict, c.Optimal,
	}
}

// fault says what makes a plan invalid.
func fault(name string, c router.Certificate) string {
	switch {
	case c.Disagreements > 0:
		return name + " routes tokens that all ranks hold differently on different ranks"
	case c.Duplicates > 0:
		return name + " gives tokens an expert twice"
	case !c.Valid:
		return fmt.Sprintf("%s gives tokens experts of %d groups where the method allows %d: the router would choose others", name, c.Groups, c.GroupsLimit)
	}
	return ""
}
