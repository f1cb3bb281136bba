package render

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

func VerifiedCache(dir string, s logits.Survey) output.Document {
	result := s.Verification()
	var faults [][]any
	for _, e := range s.Entries {
		if e.Err != nil {
			faults = append(faults, []any{e.Path, e.Fault()})
		}
	}
	d := output.Document{Tables: []output.Table{balanceTable(s)}, Value: result}
	d.Headline = fmt.Sprintf("all %s in %s verified; balance at its floor for %d of %s",
		quantity.Count(len(s.Entries), "entry"), dir, result.AtFloor(), quantity.Count(len(s.Batches), "batch size"))
	if failed := len(faults); failed > 0 {
		d.Headline = fmt.Sprintf("%d of %s in %s failed", failed, quantity.Count(len(s.Entries), "entry"), dir)
		d.Tables = append(d.Tables, output.Table{
			Name: "failed", Title: "Failed entries", Columns: []output.Column{{Name: "path"}, {Name: "reason"}}, Rows: faults,
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
		{Name: "active experts", Key: "active_experts", Kind: output.Count}, {Name: "ideal", Key: "active_experts_ideal", Kind: output.Count},
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

// cacheList is the JSON of logits list.
type cacheList struct {
	SchemaVersion int             `json:"schema_version"`
	Kind          string          `json:"kind"` // always "logits list"
	Balance       []listedBalance `json:"balance"`
	Bytes         int64           `json:"bytes"`
	Warnings      []string        `json:"warnings"`
}

type listedBalance struct {
	logits.BatchBalance
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Status  string `json:"status"`
}

func ListedCache(dir string, s logits.Survey) output.Document {
	result := cacheList{SchemaVersion: 1, Kind: "logits list", Balance: []listedBalance{}, Warnings: []string{}}
	for _, e := range s.Entries {
		result.Bytes += e.Bytes
		if e.Err != nil {
			result.Warnings = append(result.Warnings, fmt.Sprintf("%s: %s", e.Path, e.Fault()))
		}
	}
	entries := 0
	for _, b := range s.Batches {
		entries += b.Entries
		result.Balance = append(result.Balance, listedBalance{
			BatchBalance: b.BatchBalance(), Entries: b.Entries, Bytes: b.Bytes, Status: balanceStatus(b),
		})
	}
	return output.Document{
		Headline: fmt.Sprintf("%s for %s in %s, %s", quantity.Count(entries, "entry"), quantity.Count(len(s.Batches), "batch size"), dir, quantity.Bytes(float64(result.Bytes))),
		Tables:   []output.Table{balanceTable(s)}, Notes: result.Warnings, Value: result,
	}
}

// showUnequal adds a column behind that of tokens per rank if some rows are about
// batches whose ranks differ: the tokens of each, as --unequal takes them.
func showUnequal(t *output.Table, batches []logits.Batch) {
	differ := func(b logits.Batch) bool { return b.OfRanks() != nil }
	if !slices.ContainsFunc(batches, differ) {
		return
	}
	at := 1 + slices.IndexFunc(t.Columns, func(c output.Column) bool { return c.Key == "tokens_per_rank" })
	t.Columns = slices.Insert(t.Columns, at, output.Column{Name: "tokens of ranks", Key: "tokens_of_ranks"})
	for i, b := range batches {
		var cell any
		if differ(b) {
			cell = b.String()
		}
		t.Rows[i] = slices.Insert(t.Rows[i], at, cell)
	}
}

// shapeText is a gate in words: "256 experts, top-8, 4 of 8 groups, DeepSeekV3".
func shapeText(shape router.Shape, method router.Method) string {
	return shape.String() + ", " + string(method)
}
