package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
	"github.com/moebalance/moebalance/router/quantity"
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
		Short: "reference plans against ours, counted",
		Long: `plans counts what each plan does to one layer, over all ranks together, beside
the floors that no assignment can beat. Nothing is measured and nothing written.

rank and expert max/mean are the largest load over the mean load. Their floors
are what indivisible slots allow; ranks come first, so where ranks hold unequally
many experts the floor of experts is that of plans whose ranks are even. active
experts are those with any token, beside the most that so many slots can touch:
a plan that touches fewer reads fewer weights than balanced traffic would, which
makes its decode time too good. pair above floor is for the sending rank that
spreads worst over its targets: by how many slots its busiest target is above what
an even spread would give it. receiver conflict is the most senders that send to
one rank in the same step; 1 is best, and tep has none.

The verdict is optimal when ranks, experts, pairs and active experts are all at
their floors; with replicas the copies of experts are judged in their stead. A plan
is invalid when a token gets an expert twice or experts of more groups than the
method allows, or when ranks disagree about tokens that all of them hold.`,
		Example: `  moebalance logits plans --model deepseek-v3 --ep 4,8,16 --tokens 1,8,64
  moebalance logits plans --model gpt-oss-120b --ep 8 --plans diagonal,uniform --seed 7
  moebalance logits plans --model deepseek-v3 --unequal 9,2,0,5,5,1,3,7 --plans trtllm-gen2,diagonal
  moebalance logits plans --experts 60 --top-k 4 --ep 8 --tokens 3 --plans diagonal --format json`,
		Args: argCount(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	o.gate.bindModel(f)
	o.gate.bindRanks(f)
	f.IntSliceVar(&o.ranks, "ep", []int{8}, "expert-parallel ranks, one or several numbers")
	o.batch.bind(f, []int{1, 8, 64})
	f.IntVar(&o.layer, "layer", 0, "shift the plans as for this layer, as far as they know layers")
	f.StringSliceVar(&o.plans, "plans", []string{"trtllm-gen1", "trtllm-gen2", "diagonal"}, "which plans: "+strings.Join(plan.Names(), ", "))
	o.knobs.bind(f)
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
	if err := o.batch.check(mostSlots); err != nil {
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

// plansResult is the JSON of logits plans.
type plansResult struct {
	SchemaVersion int           `json:"schema_version"`
	Kind          string        `json:"kind"` // always "logits plans"
	Model         string        `json:"model"`
	Method        router.Method `json:"method"`
	Shape         router.Shape  `json:"shape"`
	Mode          router.Mode   `json:"mode"`
	Layer         int           `json:"layer"`
	Plans         []plannedCase `json:"plans"`
}

// plannedCase is one plan for one problem.
type plannedCase struct {
	Name          string            `json:"name"`
	Ranks         int               `json:"ranks"`
	TokensPerRank router.Number     `json:"tokens_per_rank"`           // null where ranks differ
	TokensOfRanks []int             `json:"tokens_of_ranks,omitempty"` // only where they do, by rank
	Certificate   *plan.Certificate `json:"certificate"`               // null when the plan refuses
	Refused       string            `json:"refused,omitempty"`         // why

	batch logits.Batch
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
		Model: name, Method: gate.Method, Shape: gate.Shape, Mode: router.Mode(o.gate.mode), Layer: o.layer, Plans: []plannedCase{},
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
	return o.out.write(c, plansDocument(result, shapeText(gate)))
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
	return plan.Problem{Shape: shape, Layout: layout, Mode: router.Mode(o.gate.mode), Layer: o.layer, Tokens: tokens}
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

func planCase(name string, p plan.Problem, knobs plan.Options) plannedCase {
	b := logits.Unequal(p.Tokens...)
	row := plannedCase{Name: name, Ranks: p.Layout.Ranks(), batch: b, TokensPerRank: b.PerRank(), TokensOfRanks: b.OfRanks()}
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

func plansDocument(result plansResult, shape string) output.Document {
	t := output.Table{Name: "plans", Columns: []output.Column{
		{Name: "ranks", Kind: output.Count}, {Name: "tokens/rank", Key: "tokens_per_rank", Kind: output.Count}, {Name: "plan"},
		{Name: "rank max/mean", Key: "rank_max_over_mean", Kind: output.Ratio}, {Name: "floor", Key: "rank_floor", Kind: output.Ratio},
		{Name: "expert max/mean", Key: "expert_max_over_mean", Kind: output.Ratio}, {Name: "floor", Key: "expert_floor", Kind: output.Ratio},
		{Name: "active experts", Key: "active_experts", Kind: output.Count}, {Name: "possible", Key: "active_experts_ideal", Kind: output.Count},
		{Name: "pair above floor", Key: "pair_excess_slots", Kind: output.Count},
		{Name: "receiver conflict", Key: "receiver_conflict", Kind: output.Count}, {Name: "verdict"},
	}}
	d := output.Document{Value: result}
	var batches []logits.Batch
	names, cases, verdicts := []string{}, map[string]int{}, map[[2]string]int{}
	for _, row := range result.Plans {
		if cases[row.Name]++; cases[row.Name] == 1 {
			names = append(names, row.Name)
		}
		verdicts[[2]string{row.Name, row.verdict()}]++
		if note := row.fault(); note != "" && !slices.Contains(d.Notes, note) {
			d.Notes = append(d.Notes, note)
		}
		t.Rows = append(t.Rows, row.cells(len(t.Columns)))
		batches = append(batches, row.batch)
	}
	showUnequal(&t, batches)
	var parts []string
	for _, name := range names {
		part := fmt.Sprintf("%s optimal in %d of %s", name, verdicts[[2]string{name, optimal}], quantity.Count(cases[name], "case"))
		for _, fault := range []string{invalid, refused} {
			if n := verdicts[[2]string{name, fault}]; n > 0 {
				part += fmt.Sprintf(" (%s in %d)", fault, n)
			}
		}
		parts = append(parts, part)
	}
	d.Headline = fmt.Sprintf("%s (%s), %s: %s", result.Model, shape, result.Mode, strings.Join(parts, ", "))
	d.Tables = []output.Table{t}
	return d
}

// The verdicts on a plan for one problem.
const (
	optimal    = "optimal"
	notOptimal = "not optimal"
	invalid    = "invalid"
	refused    = "refused"
)

func (row plannedCase) verdict() string {
	switch c := row.Certificate; {
	case c == nil:
		return refused
	case !c.Valid:
		return invalid
	case c.Optimal:
		return optimal
	}
	return notOptimal
}

// cells are the row as the table shows it. A dispatch that does not happen has no
// conflict, and an invalid plan no floor to hold its pairs against.
func (row plannedCase) cells(columns int) []any {
	cells := make([]any, columns)
	cells[0], cells[1], cells[2], cells[columns-1] = row.Ranks, row.TokensPerRank, row.Name, row.verdict()
	c := row.Certificate
	if c == nil {
		return cells
	}
	copy(cells[3:], []any{
		c.Rank.MaxOverMean, c.Rank.FloorOverMean, c.Expert.MaxOverMean, c.Expert.FloorOverMean, c.ActiveExperts, c.ActiveExpertsIdeal,
	})
	if c.PairSource >= 0 {
		if c.Valid {
			cells[9] = c.Pair.Excess
		}
		cells[10] = c.ReceiverConflict
	}
	return cells
}

// fault says why a plan was refused, or what makes it invalid.
func (row plannedCase) fault() string {
	c := row.Certificate
	switch {
	case c == nil:
		return row.Refused
	case c.Valid:
		return ""
	case c.Disagreements > 0:
		return row.Name + " is invalid: it routes tokens that all ranks hold differently on different ranks"
	case c.Duplicates > 0:
		return row.Name + " is invalid: it gives tokens an expert twice"
	}
	return fmt.Sprintf("%s is invalid: tokens get experts of %d groups where the method allows %d, so the model's router would choose others and the loads shown would not come about",
		row.Name, c.Groups, c.GroupsLimit)
}
