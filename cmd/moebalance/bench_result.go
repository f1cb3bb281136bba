package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// benchResult is the JSON of bench: the judged campaign, and where it lies.
type benchResult struct {
	compare.CampaignResult
	Version  string        `json:"version"` // of this program
	Campaign campaignState `json:"campaign"`
	Profiled []profiledArm `json:"profiled"` // the profiled pair, empty where there is none
}

// campaignState is how far a campaign has come.
type campaignState struct {
	Folder       string       `json:"folder"`
	Treatment    string       `json:"treatment"`
	Order        string       `json:"order"`
	Seed         uint64       `json:"seed"`
	Pairs        int          `json:"pairs"`    // of the design, under the sequential rule at most
	Launches     int          `json:"launches"` // finished
	Left         int          `json:"left"`     // still to be launched
	Sessions     int          `json:"sessions"`
	Confidence   float64      `json:"confidence"`          // asked for; under the sequential rule of all looks together
	Looks        []int        `json:"looks"`               // pairs after which the rule looks; empty without it
	DecidedAfter router.Whole `json:"decided_after_pairs"` // undefined unless a look decided
	Format       string       `json:"format"`              // of the benchmark's report
}

// judgeProfiled judges what a campaign has so far, the traces of its profiled
// pair included, whose summaries it may keep in the campaign folder.
func judgeProfiled(ctx context.Context, c *bench.Campaign, keep bool) (benchResult, error) {
	arms, traces, err := readProfiled(ctx, c, keep)
	if err != nil {
		return benchResult{}, err
	}
	r := benchResult{
		CampaignResult: compare.Judge(compare.Recorded(c, c.Confidence(), traces)),
		Version:        version, Campaign: stateOf(c), Profiled: arms,
	}
	r.Checks = append(r.Checks, profiledChecks(arms)...)
	return r, nil
}

func stateOf(c *bench.Campaign) campaignState {
	return campaignState{
		Folder: c.Folder, Treatment: c.Spec.Treatment.Name, Order: string(c.Spec.Design.Order), Seed: c.Spec.Design.Seed, Pairs: c.Spec.Design.Pairs,
		Launches: c.Finished(), Left: c.Left(), Sessions: c.Sessions, Confidence: c.Spec.Confidence, Looks: c.Looks(), DecidedAfter: stated(c.Decided), Format: c.Format(),
	}
}

// benchTables are the names of the tables of a result, some of which may be
// missing from it.
var benchTables = []string{"pairs", "gain", "secondary", "proof", "checks", "profiled"}

// benchDocument renders the result: the verdict first, then every pair, then
// what it rests on.
func benchDocument(r benchResult) output.Document {
	quantity := r.Metric.Name
	if r.Metric.Unit != "" {
		quantity += " in " + r.Metric.Unit
	}
	pairs := output.Table{Name: "pairs", Title: fmt.Sprintf("Pairs, %s (AB: normal first)", quantity), Columns: []output.Column{
		{Name: "pair", Kind: output.Count}, {Name: "order"}, {Name: "normal", Kind: output.Real}, {Name: "perfect", Kind: output.Real},
		{Name: "gain", Key: "gain", Kind: output.Percent}, {Name: "status"}, {Name: "note"}}}
	for _, p := range r.Pairs {
		pairs.Rows = append(pairs.Rows, []any{p.Pair, p.Order, p.Normal, p.Perfect, p.Gain, p.Status, p.Note})
	}
	gain := output.Table{Name: "gain", Title: "Gain of perfect over normal", Columns: []output.Column{
		{Name: "method"}, {Name: "estimate", Kind: output.Percent}, {Name: "low", Kind: output.Percent}, {Name: "high", Kind: output.Percent},
		{Name: "confidence", Kind: output.Percent}, {Name: "pairs", Kind: output.Count}}}
	g := r.Gain
	gain.Rows = [][]any{
		{"Hodges–Lehmann, signed rank", g.Estimate, g.Low, g.High, g.Confidence, g.N},
		{"geometric mean, Student's t", g.TEstimate, g.TLow, g.THigh, g.TConfidence, g.N},
	}
	proof := output.Table{Name: "proof", Title: "Proof of the treatment", Columns: []output.Column{
		{Name: "arm"}, {Name: "rank"}, {Name: "proved"}, {Name: "evidence"}}}
	for _, p := range r.Proof {
		rank := "all"
		if p.Rank != compare.AllRanks {
			rank = fmt.Sprint(p.Rank)
		}
		proof.Rows = append(proof.Rows, []any{string(p.Arm), rank, p.Proved, p.Evidence})
	}
	checks := output.Table{Name: "checks", Title: "Checks", Columns: []output.Column{{Name: "check"}, {Name: "status"}, {Name: "text"}}}
	for _, c := range r.Checks {
		checks.Rows = append(checks.Rows, []any{c.Name, string(c.Status), c.Text})
	}
	tables := []output.Table{pairs, gain} // their names are benchTables
	if len(r.Secondary) > 0 {
		tables = append(tables, secondaryTable(r.Secondary))
	}
	tables = append(tables, proof, checks)
	if len(r.Profiled) > 0 {
		tables = append(tables, profiledTable(r.Profiled))
	}
	return output.Document{Headline: benchHeadline(r), Tables: tables, Notes: benchNotes(r), Value: r}
}

func secondaryTable(rows []compare.SecondaryGain) output.Table {
	t := output.Table{Name: "secondary", Title: "Other metrics (a gain is for the better; p by Holm over all of them)", Columns: []output.Column{
		{Name: "metric"}, {Name: "unit"}, {Name: "gain", Kind: output.Percent}, {Name: "low", Kind: output.Percent}, {Name: "high", Kind: output.Percent},
		{Name: "pairs", Kind: output.Count}, {Name: "p", Key: "p_holm", Kind: output.Real}}}
	for _, s := range rows {
		t.Rows = append(t.Rows, []any{s.Metric.Name, s.Metric.Unit, s.Gain.Estimate, s.Gain.Low, s.Gain.High, s.Gain.N, s.PHolm})
	}
	return t
}

func benchHeadline(r benchResult) string {
	return fmt.Sprintf("%s: %s", r.Verdict, strings.Join(r.Reasons, "; "))
}

func benchNotes(r benchResult) []string {
	notes := []string{"the campaign is in " + r.Campaign.Folder}
	if r.Metric.Definition != "" {
		notes = append(notes, r.Metric.Name+" is "+strings.TrimPrefix(r.Metric.Definition, r.Metric.Name+"/"))
	}
	if r.Campaign.Left > 0 {
		notes = append(notes, fmt.Sprintf("%s still to be done: %s", quantity.Count(r.Campaign.Left, "launch"), resumeLine(r.Campaign.Folder)))
	}
	if r.Campaign.DecidedAfter.Defined() {
		notes = append(notes, fmt.Sprintf("stopped by the sequential rule after %s; the confidence is that of one look", quantity.Count(int64(r.Campaign.DecidedAfter), "pair")))
	}
	return append(notes, profiledNotes(r.Profiled)...)
}
