package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// lowCoverage is the share of GPU time in layers below which the answers per
// layer rest on too little of the capture.
const lowCoverage = 0.5

// complete answers whether the data is whole and balance is verified.
func (p Page) complete() section {
	s := section{ID: "complete", Title: "Is the data complete, and is balance verified?"}
	var said []string
	for _, in := range p.campaigns() {
		said = append(said, proofSentence(in.Campaign))
		s.addTable(checksTable(in))
		s.addTable(proofTable(in))
	}
	for _, in := range p.caches() {
		said = append(said, cacheSentence(in.Cache))
		s.addTable(cacheTable(in))
		s.addTable(brokenEntries(in))
	}
	if len(p.arms) > 0 {
		said = append(said, p.coverageSentence())
		s.addTable(p.coverageTable())
		s.addTable(p.exportsTable())
	}
	for _, c := range p.compared {
		said = append(said, comparedSentence(c))
	}
	if w := p.warnings(); len(w) > 0 {
		s.addText("Warnings about the data:")
		s.addList(w)
	}
	s.Answer = strings.Join(said, " ")
	return s
}

var checkMarks = map[gain.CheckStatus]mark{gain.Pass: good, gain.Warn: warn, gain.Fail: bad}

func checksTable(in source.Item) table {
	t := table{Caption: "Checks of " + in.Name, Columns: columns("check", "status", "what was found")}
	for _, c := range in.Campaign.Checks {
		t.add(checkName(c.Name), cell{Text: string(c.Status), Mark: checkMarks[c.Status]}, c.Text)
	}
	return t
}

// checkName writes the name of a check for people.
func checkName(name string) string { return strings.ReplaceAll(name, "_", " ") }

var gradeMarks = map[gain.Grade]mark{gain.Measured: good, gain.Claimed: warn, gain.None: bad}

// proofTable lists the proofs, neighbouring ranks with the same evidence in one
// row.
func proofTable(in source.Item) table {
	t := table{Caption: "Routing proof by rank, " + in.Name, Columns: columns("arm", "#ranks", "grade", "evidence")}
	proofs := in.Campaign.Proof
	for from := 0; from < len(proofs); {
		first, to := proofs[from], from+1
		for to < len(proofs) && proofs[to].Rank == proofs[to-1].Rank+1 && proofs[to].Arm == first.Arm && proofs[to].Grade == first.Grade && proofs[to].Evidence == first.Evidence {
			to++
		}
		t.add(string(in.Campaign.Called(first.Arm)), rankSpan(first.Rank, proofs[to-1].Rank), cell{Text: string(first.Grade), Mark: gradeMarks[first.Grade]}, first.Evidence)
		from = to
	}
	t.Folded = len(t.Rows) > 16
	return t
}

// rankSpan names ranks from first to last; an undefined one stands for all.
func rankSpan(first, last router.Whole) string {
	switch {
	case !first.Defined():
		return "all"
	case first == last:
		return number(first)
	}
	return number(first) + " to " + number(last)
}

func proofSentence(c *source.Campaign) string {
	grades := map[gain.Grade]int{}
	for _, pr := range c.Proof {
		grades[pr.Grade]++
	}
	var broken []string
	for _, check := range c.Checks {
		if name := checkName(check.Name); check.Status == gain.Fail && !slices.Contains(broken, name) {
			broken = append(broken, name)
		}
	}
	switch {
	case len(broken) > 0:
		return fmt.Sprintf("No: the campaign fails its checks (%s), so its gain decides nothing.", strings.Join(broken, ", "))
	case len(c.Arms) == 2:
		return "The campaign passes its checks; it compares two builds, so no balance is to be proved."
	case len(c.Proof) == 0 || grades[gain.None] > 0:
		return "The routing of the arms is not proved."
	case grades[gain.Claimed] > 0:
		return fmt.Sprintf("The campaign passes its checks; balance is claimed (%s), not measured.", quantity.Count(grades[gain.Claimed], "claim"))
	}
	return fmt.Sprintf("The campaign passes its checks, and each arm's routing was measured (%s).", quantity.Count(len(c.Proof), "proof"))
}

func cacheTable(in source.Item) table {
	t := table{
		Caption: "Balance of the logits in " + in.Name + ", over all ranks together",
		Columns: columns("model", "#tokens per rank", "#experts, max/mean", "#floor of experts", "#ranks, max/mean", "#floor of ranks", "#active experts", "#possible", "at the floor"),
	}
	for _, b := range in.Cache.Balance {
		t.Folded = len(in.Cache.Balance) > 12
		t.add(b.Model, b.TokensPerRank, b.ExpertMaxOverMean, b.ExpertFloor, b.RankMaxOverMean, b.RankFloor, quantity.Digits4(b.ActiveExperts), b.ActiveExpertsIdeal, yesNo(b.AtFloor, good, bad))
	}
	return t
}

// brokenEntries lists the files that failed their verification.
func brokenEntries(in source.Item) table {
	t := table{Caption: "Entries that failed their verification", Columns: columns("entry", "status")}
	for _, e := range in.Cache.Entries {
		if strings.HasPrefix(e.Status, "failed") {
			t.add(base(e.Path), cell{Text: e.Status, Mark: bad})
		}
	}
	return t
}

func cacheSentence(c *logits.Verification) string {
	return fmt.Sprintf("The balanced logits reach the floor of both experts and ranks at %d of %s.", c.AtFloor(), quantity.Count(len(c.Balance), "batch size"))
}

func (p Page) coverageSentence() string {
	var parts []string
	for _, a := range p.arms {
		parts = append(parts, fmt.Sprintf("%s of the GPU time of %s", quantity.Percent(a.Trace.Coverage.LayerShare), a.Name))
	}
	return "Attributed to a layer: " + strings.Join(parts, ", ") + "."
}

func (p Page) coverageTable() table {
	t := table{
		Caption: "Coverage: share of GPU time that is attributed",
		Columns: columns("trace", "arm known by", "#ranks", "#GPU time", "#with a launch", "#placed in a layer", "#in an expert (observed)"),
	}
	for _, a := range p.arms {
		c := a.Trace.Coverage
		layers := cell{Text: quantity.Percent(c.LayerShare)}
		if !(c.LayerShare >= lowCoverage) {
			layers.Mark = warn
		}
		t.add(a.Name, orMissing(a.Trace.ArmEvidence), len(a.Trace.Ranks), quantity.Duration(router.Number(c.GPUNS)), quantity.Percent(c.LaunchShare), layers, quantity.Percent(c.ExpertShare))
	}
	return t
}

func (p Page) exportsTable() table {
	t := table{
		Caption: "The exports", Folded: true,
		Columns: columns("trace", "export", "nsys", "CUDA graphs", "ranks", "#kernels", "#launches", "#ranges"),
	}
	for _, a := range p.arms {
		for _, e := range a.Trace.Exports {
			ranks := strings.Trim(fmt.Sprint(e.Ranks), "[]")
			t.add(a.Name, base(e.Path), orMissing(e.NsysVersion), orMissing(e.GraphMode), orMissing(ranks), e.Kernels, e.Launches, e.Ranges)
		}
	}
	return t
}

// base is the last element of a path of either kind of system.
func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

func orMissing(s string) string {
	if s == "" {
		return quantity.Unknown
	}
	return s
}

// warnings lists what all inputs warn of, each text once with the places it is
// about, in the order of their first appearance.
func (p Page) warnings() (out []string) {
	var all []router.Warning
	add := func(from string, warnings ...router.Warning) {
		for _, w := range warnings {
			w.Subject = cmp.Or(base(w.Subject), from)
			all = append(all, w)
		}
	}
	for _, a := range p.arms {
		add(a.Name, a.Trace.AllWarnings()...)
	}
	for _, c := range p.compared {
		for _, w := range c.Warnings {
			if !slices.ContainsFunc(all, func(known router.Warning) bool { return known.Text == w.Text }) { // it passes on those of the traces
				add("comparison", w)
			}
		}
	}
	for _, in := range p.counts() {
		add(in.Name, in.Counts.Warnings...)
	}
	if len(p.arms) > 0 && len(p.campaigns()) > 0 {
		add("report", router.Warning{Text: "campaign and traces were recorded separately; nothing here shows that they are of the same program"})
	}
	for _, w := range source.GroupWarnings(all) {
		out = append(out, fmt.Sprintf("%s (%s)", w.Text, few(w.Subjects)))
	}
	return out
}

// few lists the first names and counts the rest.
func few(names []string) string {
	const most = 3
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
