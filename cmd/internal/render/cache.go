package render

import (
	"fmt"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// VerifiedCache lays out what verify found.
func VerifiedCache(dir string, v logits.Verification) output.Document {
	var failed [][]any
	for _, e := range v.Entries {
		if e.Err != nil {
			failed = append(failed, []any{e.Path, e.Fault()})
		}
	}
	d := output.Document{Tables: []output.Table{balanceTable(v.Balance)}, Value: v}
	entries := quantity.Count(len(v.Entries), "entry")
	if len(failed) == 0 {
		if len(v.Entries) > 1 {
			entries = "all " + entries
		}
		d.Headline = fmt.Sprintf("%s in %s verified; balance at its floor for %d of %s", entries, dir, v.AtFloor(), quantity.Count(len(v.Balance), "batch size"))
		return d
	}
	d.Headline = fmt.Sprintf("%d of %s in %s failed", len(failed), entries, dir)
	d.Tables = append(d.Tables, output.Table{
		Name: "failed", Title: "Failed entries", Columns: []output.Column{{Name: "path"}, {Name: "reason"}}, Rows: failed,
	})
	return d
}

// balanceTable shows balance beside its floor, one row per batch size.
func balanceTable(balance []logits.BatchBalance) output.Table {
	return output.Of("balance", "Balance over all ranks together", balance,
		label("model"), label("method"), label("plan"), label("mode"), count("layer"),
		computed(label("dtype"), func(b logits.BatchBalance) any { return contentText(b.DType, b.Content == "ids") }),
		count("ranks"), count("tokens/rank", "tokens_per_rank"), ratio("expert max/mean"), ratio("floor", "expert_floor"),
		ratio("rank max/mean"), ratio("floor", "rank_floor"), count("active experts"), count("ideal", "active_experts_ideal"),
		computed(count("entries"), func(b logits.BatchBalance) any { return b.Entries }),
		computed(size("size", "bytes"), func(b logits.BatchBalance) any { return b.Bytes }),
		computed(label("status"), func(b logits.BatchBalance) any { return balanceStatus(b) }))
}

// contentText is the element type of the logits, where there are some.
func contentText(d logits.DType, idsOnly bool) string {
	if idsOnly {
		return "ids only"
	}
	return string(d)
}

// balanceStatus is the worst status of a batch size's entries, or which are bad.
func balanceStatus(b logits.BatchBalance) string {
	if n := len(b.MissingRanks); n > 0 {
		return fmt.Sprintf("%d of %d ranks missing or bad (%s)", n, b.Ranks, rangesText(b.MissingRanks))
	}
	return string(b.Status)
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

// ListedCache lays out what list found.
func ListedCache(dir string, v logits.Verification) output.Document {
	result := cacheList{SchemaVersion: 1, Kind: "logits list", Balance: []listedBalance{}, Warnings: []string{}}
	for _, e := range v.Entries {
		result.Bytes += e.Bytes
		if e.Err != nil {
			result.Warnings = append(result.Warnings, fmt.Sprintf("%s: %s", e.Path, e.Fault()))
		}
	}
	entries := 0
	for _, b := range v.Balance {
		entries += b.Entries
		result.Balance = append(result.Balance, listedBalance{b, b.Entries, b.Bytes, balanceStatus(b)})
	}
	return output.Document{
		Headline: fmt.Sprintf("%s for %s in %s, %s", quantity.Count(entries, "entry"), quantity.Count(len(v.Balance), "batch size"), dir, quantity.Bytes(float64(result.Bytes))),
		Tables:   []output.Table{balanceTable(v.Balance)}, Notes: result.Warnings, Value: result,
	}
}

// shapeText is a gate in words: "256 experts, top-8, 4 of 8 groups, DeepSeekV3".
func shapeText(shape router.Shape, method router.Method) string {
	return shape.String() + ", " + string(method)
}
