package page

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// summary is the head of the page: the few numbers that answer it.
func (p Page) summary() (facts []fact) {
	for _, in := range p.campaigns() {
		f := campaignFact(in.Campaign)
		if command := in.Campaign.Command; command != "" && p.title != titleOf([]source.Item{in}) {
			f.Note += "; of " + shorten(command, 40) // beside other results, or under a title of its own
		}
		facts = append(facts, f)
	}
	for _, a := range p.arms {
		lost, mean := imbalance.TotalLoss(a.Trace.Stragglers)
		if lost.Defined() {
			facts = append(facts, fact{"Straggler loss, " + a.Name, quantity.Percent(lost / mean), quantity.Duration(lost) + " per step, of the mean rank's compute time", plain})
		}
	}
	for _, u := range p.rows() {
		if u.Level == router.LevelRank && u.Imbalance.Defined() {
			m := good
			if u.Flagged {
				m = bad
			}
			facts = append(facts, fact{"Largest rank imbalance", quantity.Percent(u.Imbalance), fmt.Sprintf("%s, %s, layer %s%s", u.Quantity, u.Source, number(u.Layer), noise(u)), m})
			break
		}
	}
	for _, in := range p.caches() {
		facts = append(facts, cacheFact(in.Cache))
	}
	return facts
}

var verdictMarks = map[gain.Verdict]mark{
	gain.Significant: bad, gain.NotSignificant: good, gain.Inconclusive: warn, gain.Invalid: bad,
	gain.Faster: good, gain.Slower: bad, gain.Equal: good,
}

func campaignFact(c *source.Campaign) fact {
	note, verdictMark := string(c.Verdict), verdictMarks[c.Verdict]
	if unfinished(c) {
		note, verdictMark = state(c), warn
	}
	if c.Gain.Low.Defined() && c.Gain.High.Defined() {
		note += fmt.Sprintf("; %s to %s at %s, %s", quantity.Change(c.Gain.Low), quantity.Change(c.Gain.High), quantity.Confidence(c.Gain.Confidence), quantity.Count(c.Gain.N, "pair"))
	} else if c.Gain.N > 0 {
		note += "; no interval from " + quantity.Count(c.Gain.N, "pair")
	}
	value := quantity.Change(c.Gain.Estimate)
	if c.Verdict == gain.Invalid && !unfinished(c) {
		value, note = string(c.Verdict), "the campaign fails its checks: its gain decides nothing"
	}
	name := "Gain of perfect balance"
	switch {
	case len(c.Arms) == 2:
		name = fmt.Sprintf("Gain of %s over %s", c.Called(gain.Perfect), c.Called(gain.Normal))
	case c.Chance:
		name = "Gain of random routing"
	}
	if len(c.Points) > 0 {
		name += ", at its clearest load"
	}
	return fact{name, value, note, verdictMark}
}

func cacheFact(c *logits.Verification) fact {
	m := good
	if c.AtFloor() < len(c.Balance) {
		m = warn
	}
	return fact{"Balanced logits at the floor", fmt.Sprintf("%d of %d", c.AtFloor(), len(c.Balance)), "batch sizes, experts and ranks", m}
}
