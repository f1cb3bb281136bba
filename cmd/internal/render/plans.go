package render

import (
	"fmt"
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
	Plans         []plan.Case   `json:"plans"`
	// EveryTokens certifies our plan for every number of tokens, for each number of
	// ranks on which its table has a period.
	EveryTokens []plan.EveryTokens `json:"every_tokens,omitempty"`
}

// Document lays the plans out, with how often each is optimal.
func (result Plans) Document() output.Document {
	t := table.Table{Name: "plans", Columns: []table.Column{
		count("ranks"), count("tokens/rank", "tokens_per_rank"), label("plan"), ratio("rank max/mean"),
		ratio("floor", "rank_floor"),
		ratio("expert max/mean"), ratio("floor", "expert_floor"), count("active experts"),
		count("ideal", "active_experts_ideal"),
		count("pair excess", "pair_excess_slots"), count("receiver conflict"), label("verdict"),
	}}.Least("receiver_conflict", "pair_excess_slots", "active_experts_ideal", "active_experts", "expert_floor",
		"rank_floor", "rank_max_over_mean", "expert_max_over_mean")
	d := output.Document{Value: result}
	names, cases, verdicts := []string{}, map[string]int{}, map[[2]string]int{}
	for _, row := range result.Plans {
		if cases[row.Name]++; cases[row.Name] == 1 {
			names = append(names, row.Name)
		}
		verdicts[[2]string{row.Name, caseVerdict(row)}]++
		if note := caseFault(row, result.mostGroups(row.Name)); note != "" && !slices.Contains(d.Notes, note) {
			d.Notes = append(d.Notes, note)
		}
		t.Rows = append(t.Rows, caseCells(row, len(t.Columns)))
	}
	for _, e := range result.EveryTokens {
		d.Notes = append(d.Notes, fmt.Sprintf("%s on %s: %s", e.Name, quantity.Count(e.Ranks, "rank"),
			proofSentence(e.Proof)))
	}
	var parts []string
	for _, name := range names {
		part := fmt.Sprintf("%s %d of %d", name, verdicts[[2]string{name, optimal}], cases[name])
		for _, fault := range []string{invalid, refused} {
			if n := verdicts[[2]string{name, fault}]; n > 0 {
				part += fmt.Sprintf(" (%d %s)", n, fault)
			}
		}
		parts = append(parts, part)
	}
	d.Headline = fmt.Sprintf("%s (%s), %s: optimal cases: %s", result.Model, shapeText(result.Shape, result.Method),
		result.Mode, strings.Join(parts, ", "))
	d.Tables = []table.Table{t}
	return d
}

// The verdicts on a plan for one problem.
const (
	optimal    = "optimal"
	notOptimal = "not optimal"
	invalid    = "invalid"
	refused    = "refused"
)

func caseVerdict(row plan.Case) string {
	switch c := row.Certificate; {
	case c == nil:
		return refused
	case !c.Valid:
		return invalid
	case c.Optimal:
		return optimal
	}
	return notOptimal
}

// caseCells are the row as the table shows it. A dispatch that does not happen has no
// conflict, and an invalid plan no floor to hold its pairs against.
func caseCells(row plan.Case, columns int) []any {
	cells := make([]any, columns)
	cells[0], cells[1], cells[2], cells[columns-1] = row.Ranks, row.TokensPerRank, row.Name, caseVerdict(row)
	c := row.Certificate
	if c == nil {
		return cells
	}
	copy(cells[3:], []any{
		c.Rank.MaxOverMean, c.Rank.FloorOverMean, c.Expert.MaxOverMean, c.Expert.FloorOverMean, c.ActiveExperts,
		c.ActiveExpertsIdeal,
	})
	if c.Pair != nil {
		if c.Valid {
			cells[9] = c.Pair.Excess
		}
		cells[10] = c.ReceiverConflict
	}
	return cells
}

// mostGroups is how many groups a token of a plan uses at most, in all its cases.
func (result Plans) mostGroups(name string) (most int) {
	for _, row := range result.Plans {
		if row.Name == name && row.Certificate != nil {
			most = max(most, row.Certificate.Groups)
		}
	}
	return most
}

// caseFault says why a plan was refused, or what makes it invalid.
func caseFault(row plan.Case, mostGroups int) string {
	c := row.Certificate
	switch {
	case c == nil:
		return row.Refused
	case c.Valid:
		return ""
	case c.Disagreements > 0:
		return row.Name + " is invalid: ranks route the same tokens differently"
	case c.Duplicates > 0:
		return row.Name + " is invalid: a token gets the same expert twice"
	}
	return fmt.Sprintf("%s is invalid: tokens use experts of %d groups, the method allows %d; the model's router would "+
		"pick other experts",
		row.Name, mostGroups, c.GroupsLimit)
}
