package render

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
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
	Layer         int           `json:"layer"`
	Spans         []plan.Span   `json:"spans"` // of each plan and number of ranks
	Plans         []plan.Case   `json:"plans"`
}

// Document says of each plan, on each number of ranks, for which numbers of tokens it is at the
// floors, and how far it is from them elsewhere.
func (result Plans) Document() output.Document {
	var tokens []int
	for _, row := range result.Plans {
		tokens = append(tokens, row.TokensPerRank)
	}
	var even []string
	for _, s := range result.Spans {
		everywhere := !slices.ContainsFunc(result.Spans, func(o plan.Span) bool {
			return o.Name == s.Name && len(o.AtFloors) < o.Counted
		})
		if everywhere && !slices.Contains(even, s.Name) {
			even = append(even, s.Name)
		}
	}
	line := "No plan is"
	switch last := len(even) - 1; len(even) {
	case 0:
	case 1:
		line = even[0] + " alone is"
	default:
		line = strings.Join(even[:last], ", ") + " and " + even[last] + " are"
	}
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	spans := table.Of("plans", "", result.Spans, "ranks, plan<name, at_floors_for=at the floors for, busiest_rank=worst busiest "+
		"rank, busiest_expert=worst busiest expert, active_experts=fewest active experts, refused",
		table.Computed("at_floors_for", floorsText),
		table.Computed("busiest_rank", func(s plan.Span) any { return worst(s.Rank) }),
		table.Computed("busiest_expert", func(s plan.Span) any { return worst(s.Expert) }),
		table.Computed("active_experts", func(s plan.Span) any { return worst(s.Active) }))
	cases := table.Of("cases", "", result.Plans, "ranks, tokens_per_rank=tokens/rank, plan<name, "+
		"rank_max_over_mean<certificate.rank.max_over_mean, rank_floor<certificate.rank.floor_over_mean=floor, "+
		"expert_max_over_mean<certificate.expert.max_over_mean, expert_floor<certificate.expert.floor_over_mean=floor, "+
		"active_experts<certificate.active_experts, active_experts_ideal<certificate.active_experts_ideal=ideal, "+
		"pair_excess_slots:count=pair excess, receiver_conflict<certificate.receiver_conflict:count, verdict",
		table.Computed("pair_excess_slots", func(row plan.Case) any { // an invalid plan has no floor for its pairs
			if c := row.Certificate; c != nil && c.Valid && c.Pair != nil {
				return c.Pair.Excess
			}
			return nil
		}), table.Computed("verdict", caseVerdict))
	return output.Document{Value: result, Lead: &spans, Tables: []table.Table{cases, spans},
		Headline: line + " as even as whole slots allow at " + result.where(even, tokens) + ".",
		Answer: &output.Answer{Tone: output.Fine, Verdict: "complete", Basis: fmt.Sprintf("%s, %s, %s, %s, tokens per rank %s",
			result.Model, result.Shape, result.Method, result.Mode, quantity.Ranges(tokens))}}
}

// where says for which numbers of tokens these plans are at the floors: for every one where that is proved,
// else for the counted ones. Without a plan "every number" is denied.
func (result Plans) where(even []string, tokens []int) string {
	proved := !slices.ContainsFunc(result.Spans, func(s plan.Span) bool {
		return slices.Contains(even, s.Name) && (s.Every == nil || !s.Every.Optimal())
	})
	switch {
	case proved:
		return "every number of tokens"
	case len(tokens) == 1:
		return quantity.Count(tokens[0], "token") + " per rank"
	}
	return fmt.Sprintf("all %d numbers of tokens that were counted", len(tokens))
}

// floorsText says for which numbers of tokens a plan is at the floors: "1 to 8, 64".
func floorsText(s plan.Span) any {
	switch at := quantity.Ranges(s.AtFloors); {
	case s.Refused != "":
		return "refused"
	case s.Invalid == s.Counted:
		return "invalid"
	case s.Every != nil && s.Every.Optimal():
		return "every number"
	case len(at) > 40:
		return fmt.Sprintf("%d of %d", len(s.AtFloors), s.Counted)
	default:
		return at
	}
}

// worst is the case furthest from its floor: "8 for 64 at 1" is 8 where 64 are possible, at 1 token.
func worst(w plan.Worst) any {
	if !w.TokensPerRank.Defined() || w.Achieved == w.Floor {
		return nil
	}
	return fmt.Sprintf("%s for %s at %d", load(w.Achieved), load(w.Floor), w.TokensPerRank)
}

// load writes a whole number as it is, and another with three digits.
func load(v router.Number) string {
	if v == router.Number(math.Trunc(v.Float64())) {
		return quantity.Plain(v)
	}
	return quantity.Digits3(v)
}

// caseVerdict is the verdict on a plan for one problem.
func caseVerdict(row plan.Case) any {
	switch c := row.Certificate; {
	case c == nil:
		return "refused"
	case !c.Valid:
		return "invalid"
	case c.Optimal:
		return "optimal"
	}
	return "not optimal"
}
