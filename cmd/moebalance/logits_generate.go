package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
)

type generateOptions struct {
	gate    gateFlags
	cache   string
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
		Short: "make balanced logits, adding what is missing",
		Long: `generate plans balanced routing and writes it as router logits, one safetensors
file per rank and batch size, into the folder --cache. What is there already
stays. Without --tokens it makes the 22 batch sizes that engines prepare, from 1
to 8192 tokens per rank. --unequal names the tokens of each rank instead: such
ranks are balanced together, so their entries are for that very batch and no
other, and a rank without tokens gets an entry of no rows.

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
	f.StringVar(&o.cache, "cache", "", "the `FOLDER` that holds the entries; made if absent")
	o.batch.bind(f, logits.CommonTokens())
	f.IntSliceVar(&o.ranks, "rank", nil, "make the entries of these ranks alone (default all)")
	f.StringVar(&o.dtype, "dtype", "", "float32, bfloat16 or float16 (default what the model's engines use)")
	f.StringVar(&o.plan, "plan", router.PlanNames()[0], "how slots are assigned to experts: "+strings.Join(router.PlanNames(), ", "))
	o.knobs.bind(f)
	f.IntVar(&o.layer, "layer", 0, "shift the plan as for this layer, so that remainders do not pile up")
	f.BoolVar(&o.idsOnly, "ids-only", false, "keep expert_ids alone, without logits")
	o.out.bind(c)
	for flag, values := range map[string][]string{
		"mode": {string(router.DEP), string(router.TEP)}, "dtype": logits.DTypes, "plan": router.PlanNames(),
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
	case o.cache == "":
		return usagef("want --cache, the folder to keep entries in")
	case o.layer < 0:
		return usagef("--layer: want 0 or more, have %d", o.layer)
	}
	return o.knobs.check("--plan", o.plan)
}

// generateResult is the JSON of logits generate.
type generateResult struct {
	SchemaVersion int             `json:"schema_version"`
	Kind          string          `json:"kind"` // always "logits generate"
	Cache         string          `json:"cache"`
	Model         string          `json:"model"`
	Method        router.Method   `json:"method"`
	Shape         router.Shape    `json:"shape"`
	Mode          router.Mode     `json:"mode"`
	Ranks         int             `json:"ranks"`
	DType         logits.DType    `json:"dtype"`
	Plan          string          `json:"plan"`
	Entries       []generateEntry `json:"entries"`
}

type generateEntry struct {
	Path          string        `json:"path"`
	Rank          int           `json:"rank"`
	TokensPerRank router.Number `json:"tokens_per_rank"`           // null where ranks differ
	TokensOfRanks []int         `json:"tokens_of_ranks,omitempty"` // only where they do, by rank
	Bytes         int64         `json:"bytes"`
	New           bool          `json:"new"`
	Status        logits.Status `json:"status"`
	ProjectedRows int           `json:"projected_rows"`
	Infeasible    []int32       `json:"infeasible_experts"`
	// BiasSpread is the largest spread of a correction bias that the entry
	// survives; null where any is.
	BiasSpread router.Number `json:"bias_spread_survived"`
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
	cache, err := logits.Open(o.cache, spec)
	if errors.Is(err, logits.ErrSpec) {
		return withCode(exitUsage, err)
	}
	if err != nil {
		return err
	}
	list, err := fillCache(c, cache, ranks, o.batches())
	if err != nil {
		return err
	}
	return o.out.write(c, o.document(cache.Spec(), len(ranks), list))
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
	show, stop := countBar(c.ErrOrStderr(), "entries")
	defer stop()
	done, total := 0, len(ranks)*len(batches)
	list, err := cache.Fill(c.Context(), ranks, batches, func(logits.Outcome) {
		done++
		show(done, total)
	})
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("logits generate: interrupted after %d of %d entries; run it again to go on", done, total)
	}
	if errors.Is(err, logits.ErrSpec) {
		err = withCode(exitUsage, err)
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

func (o *generateOptions) document(s logits.Spec, ranks int, list []logits.Outcome) output.Document {
	result := generateResult{
		SchemaVersion: 1, Kind: "logits generate", Cache: o.cache, Model: s.Model, Method: s.Gate.Method,
		Shape: s.Gate.Shape, Mode: s.Mode, Ranks: s.Layout.Ranks(), DType: s.DType, Plan: s.Plan,
	}
	t := output.Table{Name: "entries", Columns: []output.Column{
		{Name: "tokens/rank", Key: "tokens_per_rank", Kind: output.Count}, {Name: "entries", Kind: output.Count},
		{Name: "new", Kind: output.Count}, {Name: "size", Key: "bytes", Kind: output.Bytes},
		{Name: "status"}, {Name: "bias spread survived", Key: "bias_spread_survived", Kind: output.Real},
	}}
	fresh, total := 0, int64(0)
	var batches []logits.Batch
	for group := range slices.Chunk(list, ranks) {
		news, size, status, spread := 0, int64(0), logits.Exact, math.Inf(1)
		for _, w := range group {
			size += w.Bytes
			if w.New {
				news++
			}
			status, spread = status.Worse(w.Finding.Status), min(spread, w.Finding.Margin)
			result.Entries = append(result.Entries, generateEntry{
				Path: w.Path, Rank: w.Rank, TokensPerRank: w.Batch.PerRank(), TokensOfRanks: w.Batch.OfRanks(), Bytes: w.Bytes, New: w.New, Status: w.Finding.Status,
				ProjectedRows: w.Finding.Moved, Infeasible: append([]int32{}, w.Finding.Impossible...), BiasSpread: router.Number(w.Finding.Margin),
			})
		}
		batches = append(batches, group[0].Batch)
		t.Rows = append(t.Rows, []any{group[0].Batch.PerRank(), len(group), news, size, string(status), router.Number(spread)})
		fresh, total = fresh+news, total+size
	}
	showUnequal(&t, batches)
	return output.Document{
		Headline: fmt.Sprintf("%s (%s) on %s, %s, %s, plan %s: %s in %s, %s, %d of them new",
			s.Model, shapeText(s.Gate), router.Count(s.Layout.Ranks(), "rank"), s.Mode, contentText(s), s.Plan, router.Count(len(list), "entry"), o.cache, output.Size(total), fresh),
		Tables: []output.Table{t}, Notes: biasNotes(s.Gate, list), Value: result,
	}
}

// biasNotes says what a correction bias does to the entries.
func biasNotes(g router.Gate, list []logits.Outcome) []string {
	if !g.Method.Biased() {
		return []string{fmt.Sprintf("%s adds no correction bias: there is nothing to survive", g.Method)}
	}
	if g.Bias == nil {
		return []string{"no correction bias was read (--bias): the entries hold for every bias whose spread, largest minus smallest value, is below the one survived"}
	}
	notes := []string{fmt.Sprintf("the correction bias that was read has a spread of %.4g", logits.Spread(g.Bias))}
	moved, lost := 0, []int32{}
	for _, w := range list {
		moved += w.Finding.Moved
		lost = append(lost, w.Finding.Impossible...)
	}
	slices.Sort(lost)
	if moved > 0 {
		notes = append(notes, fmt.Sprintf("%s without the planned experts: the entries hold what the router picks instead", router.Count(moved, "token")))
	}
	if lost = slices.Compact(lost); len(lost) > 0 {
		notes = append(notes, fmt.Sprintf("no logits can bring these experts to be chosen as planned, the bias of other experts or groups is too far above theirs: %s", rangesText(lost)))
	}
	return notes
}
