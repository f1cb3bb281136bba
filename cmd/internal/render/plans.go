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
	Spans         []plan.Span   `json:"spans"` // of each plan and number of ranks
	Plans         []plan.Case   `json:"plans"`
}

// Document says of each plan, on each number of ranks, for which numbers of tokens it is at the
// floors, and how far it is from them elsewhere.
func (result Plans) Document() output.Document {
	d := output.Document{Value: result}
	tokens, off := []int{}, map[string]bool{}
	for _, row := range result.Plans {
		tokens = append(tokens, row.TokensPerRank)
		if note := caseFault(row, result.mostGroups(row.Name)); note != "" && !slices.Contains(d.Notes, note) {
			d.Notes = append(d.Notes, note)
		}
	}
	names := []string{}
	for _, s := range result.Spans {
		if names = append(names, s.Name); len(s.AtFloors) < s.Counted {
			off[s.Name] = true
		}
		if s.Every != nil {
			d.Notes = append(d.Notes, fmt.Sprintf("%s on %s: %s", s.Name, quantity.Count(s.Ranks, "rank"),
				proofSentence(*s.Every)))
		}
	}
	even := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(names))), func(n string) bool { return off[n] })
	line := "No plan is"
	switch len(even) {
	case 0:
	case 1:
		line = even[0] + " alone is"
	default:
		line = strings.Join(even[:len(even)-1], ", ") + " and " + even[len(even)-1] + " are"
	}
	slices.Sort(tokens)
	spans := table.Of("plans", "", result.Spans, "ranks, plan, at_floors_for=at the floors for, busiest_rank, "+
		"busiest_expert, active_experts", table.Computed("plan", func(s plan.Span) any { return s.Name }),
		table.Computed("at_floors_for", floorsText),
		table.Computed("busiest_rank", func(s plan.Span) any { return offText(s.Rank) }),
		table.Computed("busiest_expert", func(s plan.Span) any { return offText(s.Expert) }),
		table.Computed("active_experts", activeText))
	d.Answer = &output.Answer{Line: line + " as even as whole slots allow at every number of tokens.", Tone: output.Fine,
		Verdict: "complete", Basis: fmt.Sprintf("%s, %s, %s, tokens per rank %s", result.Model,
			shapeText(result.Shape, result.Method), result.Mode, quantity.Ranges(slices.Compact(tokens)))}
	d.Lead, d.Tables = &spans, []table.Table{result.cases(), spans}
	return d
}

// cases is the table of every number of tokens.
func (result Plans) cases() table.Table {
	t := table.New("cases", "", "ranks:count, tokens_per_rank:count=tokens/rank, plan, rank_max_over_mean, "+
		"rank_floor=floor, expert_max_over_mean, expert_floor=floor, active_experts:count, "+
		"active_experts_ideal:count=ideal, pair_excess_slots:count=pair excess, receiver_conflict:count, verdict")
	for _, row := range result.Plans {
		t.Rows = append(t.Rows, caseCells(row, len(t.Columns)))
	}
	return t
}

// floorsText says for which numbers of tokens a plan is at the floors: "1 to 8, 64".
func floorsText(s plan.Span) any {
	switch at := quantity.Ranges(s.AtFloors); {
	case s.Refused != "":
		return refused
	case s.Invalid == s.Counted:
		return invalid
	case s.Every != nil && s.Every.Optimal():
		return "every number"
	case len(s.AtFloors) == s.Counted:
		return "all counted"
	case len(s.AtFloors) > 2*s.Counted/3 || len(at) > 40:
		return fmt.Sprintf("%d of %d", len(s.AtFloors), s.Counted)
	default:
		return at
	}
}

// offText is the worst case of a span: "up to 32.0 × the floor, at 1".
func offText(w plan.Worst) any {
	if !w.TokensPerRank.Defined() || w.Achieved <= w.Floor {
		return "at the floor"
	}
	return fmt.Sprintf("up to %s × the floor, at %d", quantity.Digits3(w.Achieved/w.Floor), w.TokensPerRank)
}

// activeText is the case with the smallest share of active experts: "8 of 64 at 1".
func activeText(s plan.Span) any {
	w := s.Active
	if !w.TokensPerRank.Defined() || w.Achieved >= w.Floor {
		return "the most"
	}
	return fmt.Sprintf("as few as %s of %s, at %d", quantity.Plain(w.Achieved), quantity.Plain(w.Floor), w.TokensPerRank)
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
