package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// ceiling answers what perfect balance would win, with its interval and the
// verdict.
func (p Page) ceiling() section {
	s := section{ID: "ceiling", Title: "What would perfect balance win at most?"}
	if all := p.campaigns(); len(all) > 0 && !slices.ContainsFunc(all, func(in source.Item) bool { return len(in.Campaign.Arms) != 2 }) {
		s.Title = "Which build is faster?"
	}
	var said []string
	for i, in := range p.campaigns() {
		c := in.Campaign
		said = append(said, verdictSentence(c))
		if !unfinished(c) || c.Verdict == gain.Invalid { // else they are reasons of a verdict that is none
			s.addList(c.Reasons)
		}
		spec := gainSpec(c)
		if i > 0 {
			spec.Name = fmt.Sprintf("%s-%d", spec.Name, i+1)
		}
		if len(c.Points) > 0 {
			s.addFigure(plots.GainCurve(curveSpec(spec, c)))
		} else {
			s.addFigure(plots.PairedGain(spec))
		}
		s.addTable(pointTable(&c.Result))
		s.addTable(armTable(&c.Result))
		s.addTable(intervalTable(&c.Result))
		s.addTable(pairTable(in))
		s.addTable(differenceTable(&c.Result))
	}
	for _, c := range p.compared {
		if c.Ceiling.GainBound.Defined() {
			said = append(said, boundSentence(c))
			s.addTable(partsTable(c.Split))
		}
	}
	s.Answer = strings.Join(said, " ")
	return s
}

// curveSpec is the figure of a campaign at several loads.
func curveSpec(s plots.GainSpec, c *source.Campaign) plots.CurveSpec {
	s.Caption = fmt.Sprintf("Measured at %s, %s each; %s. The intervals hold together at %s. What lies between the points is interpolated.",
		quantity.Count(len(c.Points), "point"), quantity.Count(c.Gain.N, "complete pair"), metricLabel(c.Metric), quantity.Confidence(c.SimultaneousConfidence))
	return plots.CurveSpec{Name: s.Name, Title: s.Title, Caption: s.Caption, Alt: s.Alt, Axis: s.Axis, Points: c.Points, Crossover: c.Crossover, Threshold: c.Threshold}
}

func pointTable(c *gain.Result) table {
	t := table{Caption: "Gain at each load; the intervals hold together", Columns: columns("#load", "#gain", "#low", "#high", "verdict", "#tokens per active expert")}
	for _, p := range c.Points {
		t.add(fmt.Sprintf("%s %g", p.Name, p.Value), quantity.Change(p.Gain.Estimate), quantity.Change(p.Gain.Low), quantity.Change(p.Gain.High), cell{Text: string(p.Verdict), Mark: verdictMarks[p.Verdict]}, quantity.Digits3(p.TokensPerExpert))
	}
	return t
}

// armTable sets the arms side by side, of a campaign with further ones.
func armTable(c *gain.Result) table {
	t := table{Caption: "Gain of each arm over normal, and share of the ceiling that it recovers", Columns: columns("arm", "#gain", "#low", "#high", "verdict", "#share", "#share, low", "#share, high")}
	if c.Share == nil {
		return t
	}
	for _, a := range c.Arms[1:] {
		share := gain.Share{Estimate: router.Undefined(), Low: router.Undefined(), High: router.Undefined()}
		if a.Share != nil {
			share = *a.Share
		}
		t.add(string(a.Name), quantity.Change(a.Gain.Estimate), quantity.Change(a.Gain.Low), quantity.Change(a.Gain.High), string(a.Verdict), quantity.Percent(share.Estimate), quantity.Percent(share.Low), quantity.Percent(share.High))
	}
	return t
}

func verdictSentence(c *source.Campaign) string {
	g, verdict, perfect := c.Gain, fmt.Sprintf("Verdict: %s", c.Verdict), strings.ToUpper(c.Routing()[:1])+c.Routing()[1:]
	if unfinished(c) {
		verdict, perfect = "No verdict yet: "+state(c), "So far "+c.Routing()
	}
	if !g.Estimate.Defined() {
		return verdict + ". No complete pair of launches."
	}
	interval := "no interval: too few pairs"
	if g.Low.Defined() && g.High.Defined() {
		interval = fmt.Sprintf("%s interval %s to %s", quantity.Confidence(g.Confidence), quantity.Change(g.Low), quantity.Change(g.High))
	}
	if c.Verdict == gain.Invalid {
		verdict += ", and what follows decides nothing"
	}
	who := perfect + " routing"
	if len(c.Arms) == 2 {
		who = fmt.Sprintf("%s, instead of %s,", c.Called(gain.Perfect), c.Called(gain.Normal))
	}
	var more string
	if len(c.Points) > 0 {
		more = fmt.Sprintf(" That is at the load with the clearest gain. %s.", strings.ToUpper(c.Crossover.Text[:1])+c.Crossover.Text[1:])
	} else if c.Share != nil {
		more = " " + c.Share.Sentence() + "."
	}
	return fmt.Sprintf("%s. %s changes throughput by %s (%s, %s; threshold %s).",
		verdict, who, quantity.Change(g.Estimate), interval, quantity.Count(g.N, "pair"), quantity.Percent(router.Number(c.Threshold))) + more
}

func gainSpec(c *source.Campaign) plots.GainSpec {
	g := c.Gain
	s := plots.GainSpec{
		Name: "gain", Title: "What would perfect balance win at most?",
		Axis:  fmt.Sprintf("throughput gain, %s over %s", c.Called(gain.Perfect), c.Called(gain.Normal)),
		Pairs: slices.DeleteFunc(slices.Clone(c.Pairs), func(p gain.Pair) bool { return p.Arm != "" }), Gain: g, Threshold: c.Threshold,
		Caption: fmt.Sprintf("%s of launches; %s. Gain is the ratio of the two launches of a pair, minus 1; launches are the unit of replication.", quantity.Count(g.N, "complete pair"), metricLabel(c.Metric)),
		Alt:     verdictSentence(c),
	}
	switch {
	case len(c.Arms) == 2:
		s.Title = fmt.Sprintf("What does %s win over %s?", c.Called(gain.Perfect), c.Called(gain.Normal))
	case c.Chance:
		s.Title = "What does random routing win?"
	}
	switch { // the figure may be shown without its page
	case unfinished(c):
		s.Title += " Not decided: " + state(c)
	case c.Verdict == gain.Invalid:
		s.Title += " Not decided: the campaign is invalid"
	}
	return s
}

// metricLabel names a metric with its unit and, where known, how it is computed.
func metricLabel(m gain.Metric) string {
	text := fmt.Sprintf("%s (%s)", m.Name, m.Unit)
	if m.Definition != "" {
		text += ": " + strings.TrimPrefix(m.Definition, m.Name+"/")
	}
	return text
}

// intervalTable sets the signed-rank interval beside the one that decides.
func intervalTable(c *gain.Result) table {
	g := c.Gain
	t := table{
		Caption: "Gain by method",
		Columns: columns("method", "#estimate", "#low", "#high", "#confidence", "#p of no gain"),
	}
	if g.N == 0 {
		return t
	}
	t.Rows = append(t.Rows,
		row(g.Method+" (decides)", quantity.Change(g.Estimate), quantity.Change(g.Low), quantity.Change(g.High), quantity.Confidence(g.Confidence), quantity.Digits4(g.P)))
	if g.Method != gain.SignedRank {
		t.Rows = append(t.Rows, row("Hodges–Lehmann, signed rank", quantity.Change(g.RankEstimate), quantity.Change(g.RankLow), quantity.Change(g.RankHigh), quantity.Confidence(g.RankConfidence), quantity.Digits4(g.RankP)))
	}
	return t
}

func pairTable(in source.Item) table {
	c := in.Campaign
	t := table{
		Caption: fmt.Sprintf("Every pair of %s: %s (%s)", in.Name, c.Metric.Name, c.Metric.Unit),
		Columns: columns("#pair", "order", "#"+string(c.Called(gain.Normal)), "#"+string(c.Called(gain.Perfect)), "#gain", "status", "note"),
	}
	for _, p := range c.Pairs {
		pair := fmt.Sprint(p.Pair)
		if p.Point > 0 {
			pair = fmt.Sprintf("%d at %g", p.Pair, p.Point)
		}
		if p.Arm != "" {
			pair += ", " + string(p.Arm)
		}
		t.add(pair, orMissing(p.Order), quantity.Digits4(p.Normal), quantity.Digits4(p.Perfect), quantity.Change(p.Gain), p.Status, p.Note)
	}
	t.Folded = len(t.Rows) > 12
	return t
}

func differenceTable(c *gain.Result) table {
	t := table{Caption: "Differences between the arms", Columns: columns("arm", "kind", "name", "value", "value in "+string(c.Called(gain.Normal)), "declared")}
	for _, d := range c.Differences {
		t.add(string(cmp.Or(d.Arm, c.Called(gain.Perfect))), d.Kind, d.Name, orMissing(d.Perfect), orMissing(d.Normal), yesNo(d.Declared, plain, bad))
	}
	return t
}

func unfinished(c *source.Campaign) bool { return c.Campaign.Left > 0 }

// state says how far an unfinished campaign has come.
func state(c *source.Campaign) string {
	of := "of"
	if len(c.Campaign.Looks) > 0 {
		of = "of at most"
	}
	return fmt.Sprintf("unfinished, %d %s %s", c.Gain.N, of, quantity.Count(c.Campaign.Pairs, "pair"))
}
