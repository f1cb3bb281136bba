package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/quantity"
)

func logitsVerifyCmd() *cobra.Command {
	var out resultFlags
	c := &cobra.Command{
		Use:   "verify FOLDER",
		Short: "prove every entry by routing it; exit 3 if one fails",
		Long: `verify reads back every entry of a cache folder and proves that it is what it
says: whole, undamaged, under the name that its content has, as the plan it names
would make it, and routed by the exact mathematics of the model's method, token
by token, to the experts it promises with equal weights.

The balance is over all ranks together. max/mean is the largest load over the
mean load, over experts and over ranks; the floor is the least that indivisible
slots allow; active experts are those with any token, beside the most that so
many slots can touch. A batch size that lacks the entries of some ranks fails.

Exits 3 when an entry fails, 1 when the folder cannot be read.`,
		Example: `  moebalance logits verify /tmp/logits
  moebalance logits verify --format json /tmp/logits`,
		Args: argCount(1, 1, "one cache folder"),
		RunE: func(c *cobra.Command, args []string) error { return verifyCache(c, args[0], &out) },
	}
	out.bind(c)
	return c
}

func verifyCache(c *cobra.Command, dir string, out *resultFlags) error {
	if err := out.check(); err != nil {
		return err
	}
	show, stop := countBar(c.ErrOrStderr(), "entries")
	survey, err := logits.Verify(c.Context(), dir, show)
	stop()
	if err != nil {
		return err
	}
	if err := out.write(c, verifyDocument(dir, survey)); err != nil {
		return err
	}
	return verdict(survey)
}

// verdict is nil when every entry is what it says, and names the first that is not.
func verdict(s logits.Survey) error {
	failed, first := 0, ""
	for _, e := range s.Entries {
		if e.Err == nil {
			continue
		}
		if failed++; failed == 1 {
			first = fmt.Sprintf("%q: %s", e.Path, e.Fault())
		}
	}
	if failed == 0 {
		return nil
	}
	return withCode(exitGate, fmt.Errorf("logits verify: %d of %s failed; 'moebalance logits generate', run as it was, replaces damaged entries and adds missing ones, other files are to be removed; the first: %s", failed, quantity.Count(len(s.Entries), "entry"), first))
}

func verifyDocument(dir string, s logits.Survey) output.Document {
	result := s.Verification()
	var faults [][]any
	for _, e := range s.Entries {
		if e.Err != nil {
			faults = append(faults, []any{e.Path, e.Fault()})
		}
	}
	d := output.Document{Tables: []output.Table{balanceTable(s)}, Value: result}
	d.Headline = fmt.Sprintf("%s in %s, every one what it says and routed as promised; balance at its floor in %d of %s",
		quantity.Count(len(s.Entries), "entry"), dir, result.AtFloor(), quantity.Count(len(s.Batches), "batch size"))
	if failed := len(faults); failed > 0 {
		d.Headline = fmt.Sprintf("%d of %s in %s failed", failed, quantity.Count(len(s.Entries), "entry"), dir)
		d.Tables = append(d.Tables, output.Table{
			Name: "failed", Title: "Failed entries", Columns: []output.Column{{Name: "path"}, {Name: "why"}}, Rows: faults,
		})
	}
	return d
}

// balanceTable shows balance beside its floor, one row per batch size.
func balanceTable(s logits.Survey) output.Table {
	t := output.Table{Name: "balance", Title: "Balance over all ranks together", Columns: []output.Column{
		{Name: "model"}, {Name: "method"}, {Name: "plan"}, {Name: "mode"}, {Name: "layer", Kind: output.Count}, {Name: "dtype"},
		{Name: "ranks", Kind: output.Count}, {Name: "tokens/rank", Key: "tokens_per_rank", Kind: output.Count},
		{Name: "expert max/mean", Key: "expert_max_over_mean", Kind: output.Ratio}, {Name: "floor", Key: "expert_floor", Kind: output.Ratio},
		{Name: "rank max/mean", Key: "rank_max_over_mean", Kind: output.Ratio}, {Name: "floor", Key: "rank_floor", Kind: output.Ratio},
		{Name: "active experts", Key: "active_experts", Kind: output.Count}, {Name: "possible", Key: "active_experts_ideal", Kind: output.Count},
		{Name: "entries", Kind: output.Count}, {Name: "size", Key: "bytes", Kind: output.Bytes}, {Name: "status"},
	}}
	var batches []logits.Batch
	for _, b := range s.Batches {
		v := b.BatchBalance()
		batches = append(batches, b.Batch)
		t.Rows = append(t.Rows, []any{
			v.Model, string(v.Method), v.Plan, string(v.Mode), v.Layer, contentText(b.Spec), v.Ranks, v.TokensPerRank,
			v.ExpertMaxOverMean, v.ExpertFloor, v.RankMaxOverMean, v.RankFloor, v.ActiveExperts, v.ActiveExpertsIdeal,
			b.Entries, b.Bytes, balanceStatus(b),
		})
	}
	showUnequal(&t, batches)
	return t
}

// contentText is the element type of a spec's logits, where it has some.
func contentText(s logits.Spec) string {
	if s.IDsOnly {
		return "ids only"
	}
	return string(s.DType)
}

// balanceStatus is the worst status of a batch size's entries, or which are bad.
func balanceStatus(b logits.BatchSurvey) string {
	if n := len(b.MissingRanks); n > 0 {
		return fmt.Sprintf("%d of %d ranks missing or bad (%s)", n, b.Spec.Layout.Ranks(), rangesText(b.MissingRanks))
	}
	return string(b.Worst)
}

// rangesText shortens ascending numbers: 0-2, 5.
func rangesText[T int | int32](list []T) string {
	text := ""
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(list[i])
		if j > i {
			text += fmt.Sprintf("-%d", list[j])
		}
		i = j + 1
	}
	return text
}
