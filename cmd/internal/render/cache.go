package render

import (
	"fmt"

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
	var failed [][]any
	for _, e := range v.Entries {
		if e.Fault() != "" {
			failed = append(failed, []any{e.Path, e.Fault()})
		}
	}
	a := answer.OfCache(&v, dir)
	d := document(a, certificateNotes(v.Balance), struct {
		logits.Verification
		Answer answer.Answer `json:"answer"`
	}{v, a}, balanceTable(v.Balance))
	if len(failed) > 0 {
		t := table.New("failed", "Failed entries", "path, reason")
		t.Rows = failed
		d.Tables = append(d.Tables, t)
	}
	return d
}

// certificateNotes say what the certificates of periodic entries prove.
func certificateNotes(balance []logits.BatchBalance) (notes []string) {
	for _, b := range balance {
		c := b.Certificate
		if c == nil {
			continue
		}
		notes = append(notes, fmt.Sprintf("%s, %s, %s: %s", b.Model, quantity.Count(b.Ranks, "rank"), b.Mode,
			proofSentence(*c)))
	}
	return notes
}

// proofSentence says for which equal numbers of tokens a table is at the floors.
func proofSentence(p plan.Proof) string {
	text := fmt.Sprintf("at the floors for 1 to %d equal tokens", p.Rows)
	switch missed := max(p.Rank.Tokens, p.Copy.Tokens, p.Active.Tokens); {
	case p.Optimal():
		return "at the floors for every equal number of tokens"
	case !p.Valid:
		return "invalid: tokens have an expert twice or too many groups"
	case missed > 0:
		text = fmt.Sprintf("above the floors in at least %d of the batches of 1 to %d equal tokens", missed, p.Rows)
	}
	if !p.Level {
		text += "; the table is not level at its end, so nothing is proved beyond it"
	}
	return text
}

// balanceTable shows balance beside its floor, one row per batch size.
func balanceTable(balance []logits.BatchBalance) table.Table {
	return table.Of("balance", "Balance over all ranks together", balance, "model, method, plan, mode, layer, dtype, "+
		"ranks, tokens_per_rank:count=tokens/rank, expert_max_over_mean, expert_floor=floor, rank_max_over_mean, "+
		"rank_floor=floor, active_experts:count, active_experts_ideal:count=ideal, entries:count, bytes=size, status",
		table.Computed("tokens_per_rank", func(b logits.BatchBalance) any { return tokensText(int(b.TokensPerRank)) }),
		table.Computed("status", func(b logits.BatchBalance) any { return balanceStatus(b) }))
}

// tokensText is a batch size; a periodic entry serves all.
func tokensText(tokens int) any {
	if tokens == logits.AnyTokens {
		return "any"
	}
	return tokens
}

// balanceStatus is the worst status of a batch size's entries, or which are bad.
func balanceStatus(b logits.BatchBalance) string {
	if n := len(b.MissingRanks); n > 0 {
		return fmt.Sprintf("%d of %d ranks missing or bad (%s)", n, b.Ranks, quantity.Ranges(b.MissingRanks))
	}
	if b.Projected {
		return "projected"
	}
	return "exact"
}

// ListedCache lays out what list found.
func ListedCache(dir string, v logits.Verification) output.Document {
	v.Kind = "logits list"
	entries, bytes, notes, sizes := 0, int64(0), []string{}, map[router.OptInt]bool{}
	for _, b := range v.Balance {
		entries, bytes, sizes[b.TokensPerRank] = entries+b.Entries, bytes+b.Bytes, true
	}
	for _, e := range v.Entries {
		if e.Fault() != "" {
			notes = append(notes, fmt.Sprintf("%s: %s", e.Path, e.Fault()))
		}
	}
	return output.Document{
		Headline: fmt.Sprintf("%s for %s in %s, %s", quantity.Count(entries, "entry"),
			quantity.Count(len(sizes), "batch size"), dir, quantity.Bytes(float64(bytes))),
		Tables: []table.Table{balanceTable(v.Balance)}, Notes: notes, Value: v,
	}
}

// GeneratedEntries lays out what generate wrote or found.
func GeneratedEntries(cache string, s logits.Spec, list []logits.Entry) output.Document {
	a := answer.OfWritten(s, list, cache)
	note := fmt.Sprintf("no correction bias in this model (%s)", s.Gate.Method)
	if s.Gate.Method.Biased() {
		note = "the entries hold for any correction bias whose spread (max − min) is below the tolerated one"
	}
	return document(a, []string{note}, struct {
		SchemaVersion int            `json:"schema_version"`
		Kind          string         `json:"kind"` // always "logits generate"
		Cache         string         `json:"cache"`
		Shape         router.Shape   `json:"shape"`
		Entries       []logits.Entry `json:"entries"`
		Answer        answer.Answer  `json:"answer"`
	}{1, "logits generate", cache, s.Gate.Shape, list, a}, table.Of("entries", "", list, "rank, "+
		"tokens_per_rank:label=tokens/rank, new, bytes=size, status, bias_spread_survived:real=bias spread tolerated, path, damage",
		table.Computed("tokens_per_rank", func(e logits.Entry) any { return tokensText(int(e.TokensPerRank)) })))
}
