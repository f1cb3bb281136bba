package page

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
)

// kind is a kind of results, and how the page shows it.
type kind struct {
	name, title, short string
	is                 func(source.Item) bool
	figures            func(*Page, []Input) []plots.Figure // the first that is not empty shows the answer
}

// kinds are the kinds of results, the strongest evidence first: a campaign before traces of both
// arms, these before one arm, a placement before the counts it was learned from.
func kinds() []kind {
	return []kind{
		{"bench", "How much does balance gain?", "Gain", func(in source.Item) bool { return in.Campaign != nil },
			(*Page).gains},
		{"compare", "Where does the difference come from?", "Difference", isCompared, (*Page).differences},
		{"trace", "Where does the time go?", "Time", isTrace, (*Page).times},
		{"place", "What would another placement gain?", "Placement",
			func(in source.Item) bool { return in.Place != nil }, (*Page).placements},
		{"counts", "How uneven is the load?", "Load", func(in source.Item) bool { return in.Counts != nil },
			(*Page).loads},
		{"cache", "Is the cache whole?", "Cache", func(in source.Item) bool { return in.Cache != nil },
			func(*Page, []Input) []plots.Figure { return nil }},
	}
}

func isTrace(in source.Item) bool    { return in.Trace != nil }
func isCompared(in source.Item) bool { return in.Compared != nil }

// lead is the input whose answer the page leads with, and its kind. Of several traces it is the
// learned arm, which is the one to mend, and of several records of counts the most uneven.
func (p *Page) lead() (Input, kind) {
	all := kinds() // which every input is one of
	k := all[slices.IndexFunc(all, func(k kind) bool { return len(p.of(k.is)) > 0 })]
	return slices.MaxFunc(p.of(k.is), byLoad), k
}

// byLoad orders records of counts by their most uneven load; other results are equal.
func byLoad(a, b Input) int {
	if a.Counts == nil || b.Counts == nil {
		return 0
	}
	one, _ := answer.MostUneven(a.Counts)
	other, _ := answer.MostUneven(b.Counts)
	return answer.ByLoad(one, other)
}

// answer is the lead's, with what traces of both arms add to a campaign.
func (p *Page) answer(lead Input) answer.Answer {
	a := lead.Answer
	if compared := p.of(isCompared); lead.Campaign != nil && len(compared) > 0 &&
		compared[0].Answer.Verdict == answer.Verdict(gain.Significant) {
		a = compared[0].Answer // which has this gain, and not what to keep in mind about the campaign
		a.Caveats = answer.DoubtsFirst(slices.Concat(lead.Answer.Caveats, a.Caveats))
	}
	a.Next = slices.DeleteFunc(slices.Clone(a.Next), func(s answer.Step) bool { // this is the page
		return strings.HasPrefix(s.Command, launch.OwnName+" report ")
	})
	return a
}

// gains are the figures of campaigns: the gain of each point or pair.
// A refused campaign has none: nobody should remember its gain.
func (p *Page) gains(inputs []Input) (out []plots.Figure) {
	for _, in := range inputs {
		if c := in.Campaign; !c.Verdict.Refused() {
			out = append(out, plots.Gains(c.Result, c.Run.Left))
		}
	}
	return out
}

// differences are the figures of a comparison: the time of each rank where the page has the traces,
// else the mean step of the sides.
func (p *Page) differences(inputs []Input) (out []plots.Figure) {
	if traces := p.of(isTrace); len(traces) > 1 {
		return []plots.Figure{plots.PhaseStacks(plots.PhaseTimes(p.arms(traces)...))}
	}
	for _, in := range inputs {
		if in.Compared.Comparable {
			out = append(out, plots.PhaseStacks(comparedPhases(in.Compared)))
		}
	}
	return out
}

// comparedPhases sets the mean step of the two sides side by side.
func comparedPhases(c *diff.Comparison) plots.StackSpec {
	names := c.Builds.Names()
	s := plots.StackSpec{Name: "compared-phases", Title: "Where does the time of a step go?", Per: "per step",
		Caption: "Kernel time by phase, mean over ranks and over the steps that the comparison counts."}
	bars, collectives := []plots.Bar{{Name: names[0].Label()}, {Name: names[1].Label()}}, [2]float64{}
	for _, phase := range c.Phases {
		for side, ns := range []router.Number{phase.NormalNS, phase.PerfectNS} {
			if phase.Collective {
				collectives[side] += ns.Float64()
			} else {
				bars[side].Add(string(phase.Phase), ns.Float64())
			}
		}
	}
	for side, ns := range collectives {
		bars[side].Add(plots.Collectives, ns)
	}
	s.Arms = []plots.Stack{{Bars: bars}}
	return s
}

// arms are traces under the names that figures show them by.
func (p *Page) arms(inputs []Input) (out []plots.Arm) {
	for _, in := range inputs {
		out = append(out, plots.Arm{Name: p.called(in), Trace: in.Trace})
	}
	return out
}

// times are the figures of traces: who is slow where, which leads where experts are uneven, and where each rank's time
// goes, unless the comparison shows it.
func (p *Page) times(inputs []Input) []plots.Figure {
	arms, shown := p.arms(inputs), make([]plots.Figure, 2)
	if len(inputs) == 1 || len(p.of(isCompared)) == 0 {
		shown[0] = plots.PhaseStacks(plots.PhaseTimes(arms...))
	}
	if slices.ContainsFunc(inputs, func(in Input) bool { return len(in.Trace.Ranks) > 1 }) {
		shown[1] = plots.HeatMap(plots.RankLayerTimes(arms...))
	}
	if inputs[0].Answer.Verdict == answer.Uneven {
		slices.Reverse(shown)
	}
	return append(shown, plots.HeatMap(plots.ExpertTimes(arms...)))
}

// placements are the figures of judged placements.
func (p *Page) placements(inputs []Input) (out []plots.Figure) {
	for _, in := range inputs {
		if len(in.Place.Placements) > 0 {
			out = append(out, plots.PlacementLayers(in.Place))
		}
	}
	return out
}

// mostMaps is how many records of expert counts are drawn expert by expert.
const mostMaps = 3

// loads is the figure of expert counts, the records of each phase apart.
func (p *Page) loads(inputs []Input) []plots.Figure {
	var records []plots.Recorded
	for _, in := range inputs[:min(mostMaps, len(inputs))] {
		at := map[string]int{}
		for _, l := range in.Counts.Loads {
			name := filepath.Base(l.Source)
			if name == filepath.Base(in.Name) {
				name = in.Name // behind its folder, where two are alike
			}
			name = shorten(strings.TrimSpace(name+" "+string(l.Phase)), 40)
			if _, seen := at[name]; !seen {
				at[name], records = len(records), append(records, plots.Recorded{Name: name, Layers: map[int][]int64{}})
			}
			records[at[name]].Layers[l.Layer] = l.Slots
		}
	}
	return []plots.Figure{plots.HeatMap(plots.RecordedLoads(records...))}
}
