package render

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// VerifiedCache lays out what verify found.
func VerifiedCache(dir string, v logits.Verification) output.Document {
	return document(answer.OfCache(&v, dir), nil, v, balanceTable(v.Balance), entriesTable("failed", "Failed entries",
		slices.DeleteFunc(slices.Clone(v.Entries), func(e logits.Entry) bool { return e.Fault() == "" })))
}

// balanceTable shows balance beside its floor, one row per batch size.
func balanceTable(balance []logits.BatchBalance) table.Table {
	return table.Of("balance", "Balance over all ranks together", balance, "model, method, plan, mode, dtype, "+
		"ranks, tokens_per_rank:count=tokens/rank, expert_max_over_mean, expert_floor=floor, rank_max_over_mean, "+
		"rank_floor=floor, active_experts:count, active_experts_ideal:count=ideal, at_floors_for=at the floors for, "+
		"entries:count, bytes=size, projected<Projected, missing<MissingRanks=ranks missing or bad",
		table.Computed("tokens_per_rank", func(b logits.BatchBalance) any { return tokensText(b.TokensPerRank) }),
		table.Computed("at_floors_for", func(b logits.BatchBalance) any { return proved(b.Certificate) }))
}

// proved says for which equal numbers of tokens the table of a periodic entry is at the floors.
func proved(p *plan.Proof) any {
	switch {
	case p == nil:
		return nil
	case !p.Valid:
		return "invalid"
	case p.Optimal():
		return "every number"
	}
	if missed := max(p.Rank.Tokens, p.Copy.Tokens, p.Active.Tokens); missed > 0 {
		return fmt.Sprintf("all but %d of 1 to %d", missed, p.Rows)
	}
	return fmt.Sprintf("1 to %d", p.Rows)
}

// tokensText is a batch size; a periodic entry serves all.
func tokensText(tokens router.OptInt) any {
	if tokens == logits.AnyTokens {
		return "any"
	}
	return int(tokens)
}

// ListedCache lays out what list found.
func ListedCache(dir string, v logits.Verification) output.Document {
	v.Kind = "logits list"
	d, entries, bytes := VerifiedCache(dir, v), 0, int64(0)
	for _, b := range v.Balance {
		entries, bytes = entries+b.Entries, bytes+b.Bytes
	}
	d.Answer, d.Headline = nil, fmt.Sprintf("%s in %s, %s", quantity.Count(entries, "entry"), dir,
		quantity.Bytes(float64(bytes)))
	return d
}

// GeneratedEntries lays out what generate wrote or found.
func GeneratedEntries(cache string, s logits.Spec, list []logits.Entry) output.Document {
	return document(answer.OfWritten(s, list, cache), nil, struct {
		SchemaVersion int            `json:"schema_version"`
		Kind          string         `json:"kind"` // always "logits generate"
		Cache         string         `json:"cache"`
		Shape         router.Shape   `json:"shape"`
		Entries       []logits.Entry `json:"entries"`
	}{1, "logits generate", cache, s.Gate.Shape, list}, entriesTable("entries", "", list))
}

func entriesTable(name, title string, list []logits.Entry) table.Table {
	return table.Of(name, title, list, "rank, tokens_per_rank:label=tokens/rank, new, bytes=size, status, "+
		"bias_spread_survived:real=correction bias tolerated (spread), path, damage",
		table.Computed("tokens_per_rank", func(e logits.Entry) any { return tokensText(e.TokensPerRank) }))
}
