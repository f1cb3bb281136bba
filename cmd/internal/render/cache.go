package render

import (
	"fmt"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/table"
)

// VerifiedCache lays out what verify found.
func VerifiedCache(dir string, v logits.Verification) output.Document {
	return document(answer.OfCache(&v, dir), nil, v, table.Of("balance", "Balance over all ranks together", v.Balance,
		"model, method, plan, mode, dtype, ranks, tokens_per_rank:count=tokens/rank (–: any), expert_max_over_mean, "+
			"expert_floor=floor, rank_max_over_mean, rank_floor=floor, active_experts:count, "+
			"active_experts_ideal:count=ideal, at_floors<certificate.Optimal=at the floors for every number, "+
			"entries:count, bytes=size, projected<Projected, missing<MissingRanks=ranks missing or bad"))
}

// ListedCache lays out what list found.
func ListedCache(dir string, v logits.Verification) output.Document {
	v.Kind = "logits list"
	d, entries, bytes := VerifiedCache(dir, v), 0, int64(0)
	for _, b := range v.Balance {
		entries, bytes = entries+b.Entries, bytes+b.Bytes
	}
	d.Answer, d.Value, d.Headline = nil, v, fmt.Sprintf("%s in %s, %s", quantity.Count(entries, "entry"), dir,
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
	}{1, "logits generate", cache, s.Gate.Shape, list}, table.Of("entries", "", list,
		"rank, tokens_per_rank:label=tokens/rank (–: any), new, bytes=size, status, "+
			"bias_spread_survived:real=correction bias tolerated (spread), path, damage"))
}
