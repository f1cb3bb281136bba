package page

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
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
	if len(a.Next) == 0 && a.Verdict == answer.Verdict(gain.Significant) && len(p.of(isTrace)) == 0 &&
		len(p.of(isCompared)) == 0 {
		a.Next = []answer.Step{{Text: "Record where the time goes, and add the traces to this page.",
			Command: "moebalance profile -- YOUR_COMMAND"}}
	}
	return a
}

// lead is the input whose answer is that of the program.
func (p *program) lead() Input {
	for _, kind := range []func(source.Item) bool{isCampaign, isCompared, isTrace, isPlace, isCounts} {
		inputs := p.of(kind)
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
