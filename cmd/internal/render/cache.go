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

// generated is the JSON of logits generate.
type generated struct {
	SchemaVersion int              `json:"schema_version"`
	Kind          string           `json:"kind"` // always "logits generate"
	Cache         string           `json:"cache"`
	Model         string           `json:"model"`
	Method        router.Method    `json:"method"`
	Shape         router.Shape     `json:"shape"`
	Mode          router.Mode      `json:"mode"`
	Ranks         int              `json:"ranks"`
	DType         logits.DType     `json:"dtype"`
	Plan          string           `json:"plan"`
	Entries       []generatedEntry `json:"entries"`
}

type generatedEntry struct {
	Path          string        `json:"path"`
	Rank          int           `json:"rank"`
	TokensPerRank router.OptInt `json:"tokens_per_rank"` // null for a periodic entry
	Bytes         int64         `json:"bytes"`
	New           bool          `json:"new"`    // nothing was there
	Damage        *string       `json:"damage"` // what was wrong with the file that was replaced; null where none was
	Status        string        `json:"status"`
	ProjectedRows int           `json:"projected_rows"`
	// LargestBias is the largest spread of a correction bias that the entry
	// tolerates; null where the method adds none.
	LargestBias router.Number `json:"bias_spread_survived"`
}

// GeneratedEntries lays out what generate wrote or found.
func GeneratedEntries(cache string, s logits.Spec, list []logits.Outcome) output.Document {
	result := generated{
		SchemaVersion: 1, Kind: "logits generate", Cache: cache, Model: s.Model, Method: s.Gate.Method,
		Shape: s.Gate.Shape, Mode: s.Mode, Ranks: s.Layout.Ranks(), DType: s.DType, Plan: list[0].Plan,
	}
	moved := 0
	for _, o := range list {
		e := generatedEntry{Path: o.Path, Rank: o.Rank, TokensPerRank: router.OptInt(o.Tokens), Bytes: o.Bytes, New: o.New,
			Status: o.Feasibility.Status(), ProjectedRows: o.Feasibility.ProjectedRows,
			LargestBias: router.Number(o.Feasibility.LargestBias)}
		if o.Damage != nil {
			e.Damage = new(o.Damage.Error())
		}
		result.Entries, moved = append(result.Entries, e), moved+e.ProjectedRows
	}
	a := answer.OfWritten(s, list, cache)
	return document(a, biasNotes(s.Gate), struct {
		generated
		Answer answer.Answer `json:"answer"`
	}{result, a}, table.Of("entries", "", result.Entries, "rank, tokens_per_rank:label=tokens/rank, new, bytes=size, status, "+
		"bias_spread_survived:real=bias spread tolerated, path, damage",
		table.Computed("damage", func(e generatedEntry) any {
			if e.Damage == nil {
				return nil
			}
			return *e.Damage
		}),
		table.Computed("tokens_per_rank", func(e generatedEntry) any { return tokensText(int(e.TokensPerRank)) })))
}

// biasNotes says what a correction bias does to the entries.
func biasNotes(g router.Gate) []string {
	if !g.Method.Biased() {
		return []string{fmt.Sprintf("no correction bias in this model (%s)", g.Method)}
	}
	if g.Bias == nil {
		return []string{"no correction bias was read (--bias); the entries hold for any bias whose spread (max − min) is " +
			"below the tolerated one"}
	}
	return []string{"spread of the correction bias: " + quantity.Digits4(logits.Spread(g.Bias))}
}
