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

// Plans is the JSON of logits plans.
type Plans struct {
	SchemaVersion int           `json:"schema_version"`
	Kind          string        `json:"kind"` // always "logits plans"
	Model         string        `json:"model"`
	Method        router.Method `json:"method"`
	Shape         router.Shape  `json:"shape"`
	Mode          router.Mode   `json:"mode"`
	Spans         []plan.Span   `json:"spans"` // of each plan and number of ranks
	Plans         []plan.Case   `json:"plans"`
}

// Document says of each plan, on each number of ranks, for which numbers of tokens it is at the
// floors, and how far it is from them elsewhere.
func (p Plans) Document() output.Document {
	var tokens []int
	for _, c := range p.Plans {
		tokens = append(tokens, c.TokensPerRank)
	}
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	even, at := []string{}, "every number of tokens"
	for _, s := range p.Spans {
		misses := func(o plan.Span) bool { return o.Name == s.Name && len(o.AtFloors) < o.Counted }
		if slices.ContainsFunc(p.Spans, misses) {
			continue
		}
		if even = append(even, s.Name); s.Every == nil || !s.Every.Optimal() {
			at = fmt.Sprintf("the numbers of tokens counted (%s)", quantity.Ranges(tokens))
		}
	}
	slices.Sort(even)
	spans := table.Of("plans", "", p.Spans,
		"ranks, plan<name, at_floors_for=at the floors for, busiest_rank=worst busiest "+
			"rank, busiest_expert=worst busiest expert, active_experts=fewest active experts, refused",
		table.Computed("at_floors_for", p.floorsText),
		table.Computed("busiest_rank", func(s plan.Span) any { return worst(s.Rank) }),
		table.Computed("busiest_expert", func(s plan.Span) any { return worst(s.Expert) }),
		table.Computed("active_experts", func(s plan.Span) any { return worst(s.Active) }))
	cases := table.Of("cases", "", p.Plans, "ranks, tokens_per_rank=tokens/rank, plan<name, "+
		"rank_max_over_mean<certificate.rank.max_over_mean, rank_floor<certificate.rank.floor_over_mean=floor, "+
		"expert_max_over_mean<certificate.expert.max_over_mean, expert_floor<certificate.expert.floor_over_mean=floor, "+
		"active_experts<certificate.active_experts, active_experts_ideal<certificate.active_experts_ideal=ideal, "+
		"valid<certificate.valid, optimal<certificate.optimal, refused")
	ranks := append(p.Spans, plan.Span{Ranks: 1})[0].Ranks
	basis := fmt.Sprintf("%s, %s, %s, %s, tokens per rank %s", p.Model, p.Shape, p.Method, p.Mode, quantity.Ranges(tokens))
	of := logits.About{Model: p.Model, Ranks: ranks, Mode: p.Mode}
	d := document(answer.OfPlans(slices.Compact(even), at, basis, of), nil, p, cases, spans)
	d.Lead = &spans
	return d
}

// floorsText says for which numbers of tokens a plan is at the floors, "1 to 8, 64", or what no router would do.
func (p Plans) floorsText(s plan.Span) any {
	beyond := func(c plan.Case) bool {
		return c.Name == s.Name && c.Ranks == s.Ranks && c.Certificate != nil && c.Certificate.Groups > p.Shape.GroupLimit()
	}
	switch {
	case s.Invalid == s.Counted && slices.ContainsFunc(p.Plans, beyond):
		return fmt.Sprintf("invalid: more than %s", quantity.Count(p.Shape.GroupLimit(), "group"))
	case s.Invalid == s.Counted && s.Refused == "":
		return "invalid"
	case s.Every != nil && s.Every.Optimal():
		return "every number"
	}
	return quantity.Ranges(s.AtFloors)
}

// worst is the case furthest from its floor: "8 for 64 at 1" is 8 where 64 are possible, at 1 token.
func worst(w *plan.Worst) any {
	if w == nil || w.Achieved == w.Floor {
		return nil
	}
	return fmt.Sprintf("%s for %s at %d", quantity.Digits4(w.Achieved), quantity.Digits4(w.Floor), w.TokensPerRank)
}
