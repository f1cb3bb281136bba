package page

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
)

// answerOf is the answer of a result, whose commands name the files that it was read from.
func answerOf(in source.Item) answer.Answer {
	given := launch.Quote(in.Given)
	if given == "" {
		given = "FILES" // which the result of a verb does not hold
	}
	switch {
	case in.Campaign != nil:
		return answer.OfCampaign(in.Campaign.Asked())
	case in.Trace != nil:
		return answer.OfTrace(in.Trace, given)
	case in.Compared != nil:
		return answer.OfComparison(in.Compared)
	case in.Counts != nil:
		return answer.OfCounts(in.Counts, given)
	case in.Place != nil:
		return answer.OfPlacement(in.Place, "")
	}
	return answer.OfCache(in.Cache, in.Name)
}

// answer is that of the strongest evidence: of a campaign before traces of both arms, of
// these before one arm, of traces before counts.
func (p *program) answer() answer.Answer {
	lead := p.lead()
	a := lead.answer
	if compared := p.of(isCompared); lead.Campaign != nil && len(compared) > 0 {
		result, run := lead.Campaign.Asked()
		a = answer.OfCampaignWith(result, run, compared[0].Compared)
	}
	a.Next = slices.DeleteFunc(slices.Clone(a.Next), func(s answer.Step) bool { // this is the page
		return strings.HasPrefix(s.Command, launch.OwnName+" report ")
	})
	a.Reasons = slices.Clone(a.Reasons)
	for i, r := range a.Reasons {
		a.Reasons[i] = option.ReplaceAllString(r, "")
	}
	if len(a.Next) == 0 {
		a.Next = []answer.Step{a.Further(p.evidence())}
	}
	return a
}

// option is how the terminal shows a table that the page holds.
var option = regexp.MustCompile(` \(--table \w+\)`)

// evidence is what the page holds beside the answer that it leads with.
func (p *program) evidence() answer.Evidence {
	lead := p.lead()
	return answer.Evidence{
		Builds:   lead.Campaign != nil && isBuilds(lead.Campaign) || lead.Compared != nil && lead.Compared.Builds.Named(),
		Traces:   len(p.of(isTrace))+len(p.of(isCompared)) > 0,
		Balanced: lead.Trace != nil && lead.Trace.Arm == string(gain.Perfect),
		Engines:  lead.Place != nil && lead.Place.Rebalance != nil,
		Cache:    lead.Cache != nil,
	}
}

// lead is the input whose answer is that of the program.
func (p *program) lead() Input {
	for _, kind := range []func(source.Item) bool{isCampaign, isCompared, isTrace, isPlace, isCounts} {
		inputs := p.of(kind)
		slices.SortStableFunc(inputs, func(a, b Input) int { return cmp.Compare(worst(b), worst(a)) })
		for _, in := range inputs {
			if in.Trace == nil || in.Trace.Arm != string(gain.Perfect) { // the learned arm is the one to mend
				return in
			}
		}
		if len(inputs) > 0 {
			return inputs[0]
		}
	}
	return p.Inputs[0]
}

// worst is how uneven recorded load is, by which the answer of several records is chosen.
func worst(in Input) (most router.Number) {
	if in.Counts != nil {
		for _, s := range in.Counts.Summary {
			if s.Level == router.LevelRank && s.WorstMaxOverMean.Defined() {
				most = max(most, s.WorstMaxOverMean)
			}
		}
	}
	return most
}

// lines are the answers of the inputs of a kind, with their names where there are several, but
// for the one that the page leads with.
func (p *program) lines(kind func(source.Item) bool) (out []string) {
	inputs := p.of(kind)
	for _, in := range inputs {
		switch text := in.answer.Line; {
		case text == p.Answer.Line:
		case len(inputs) > 1:
			out = append(out, p.called(in)+": "+text)
		default:
			out = append(out, text)
		}
	}
	return out
}

func isBuilds(c *source.Campaign) bool { return len(c.Arms) == 2 }
