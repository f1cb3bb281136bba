package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// cell is a short way to write one: work and collective time of a phase.
func cell(rank int, step, layer router.OptInt, phase trace.Phase, work, collective int64) trace.Cell {
	return trace.Cell{
		Rank: rank, Step: step, Layer: layer, Phase: phase,
		Sum: imbalance.Sum{Instances: 1, TotalNS: work + collective, CollectiveNS: collective, BusyNS: work + collective},
	}
}

// alternating is two ranks that take turns at being hot, and their balanced
// twin: one layer, experts and a collective that waits for the slower rank.
func alternating() (normal, perfect *trace.Trace) {
	normal = &trace.Trace{Arm: "normal", Cells: []trace.Cell{
		cell(0, 0, 3, trace.PhaseExperts, 30, 0), cell(0, 0, 3, trace.PhaseCombine, 0, 5),
		cell(1, 0, 3, trace.PhaseExperts, 10, 0), cell(1, 0, 3, trace.PhaseCombine, 0, 25),
		cell(0, 1, 3, trace.PhaseExperts, 10, 0), cell(0, 1, 3, trace.PhaseCombine, 0, 25),
		cell(1, 1, 3, trace.PhaseExperts, 30, 0), cell(1, 1, 3, trace.PhaseCombine, 0, 5),
	}}
	perfect = &trace.Trace{Arm: "perfect"}
	for step := range router.OptInt(3) { // another number of steps: times are per step
		for rank := range 2 {
			perfect.Cells = append(perfect.Cells,
				cell(rank, step, 3, trace.PhaseExperts, 20, 0), cell(rank, step, 3, trace.PhaseCombine, 0, 5))
		}
	}
	return normal, perfect
}

func TestCompareTracesByHand(t *testing.T) {
	normal, perfect := alternating()
	c := Compare(normal, perfect, gain.Builds{})
	if !c.Comparable || len(reasons(c)) > 0 || len(c.Work) > 0 {
		t.Fatalf("not comparable: %v; %+v", reasons(c), c.Work)
	}
	// Every rank is busy 35 in each normal step and 25 in each perfect one.
	require.Near(t, "normal step", float64(c.Step.NormalNS), 35, 0)
	require.Near(t, "perfect step", float64(c.Step.PerfectNS), 25, 0)
	require.Near(t, "step gain", float64(c.Step.Ratio-1), 0.4, 1e-12)
	// Both arms do the same expert work, 20 per rank; the slowest rank does 30
	// in each normal step, although over the capture the ranks are equal.
	experts, combine := c.Phases[0], c.Phases[1]
	if experts.Phase != trace.PhaseExperts || experts.Collective || combine.Phase != trace.PhaseCombine ||
		!combine.Collective || len(c.Phases) != 2 {
		t.Fatalf("phases: %+v", c.Phases)
	}
	require.Near(t, "expert difference", float64(experts.DifferenceNS), 0, 0)
	require.Near(t, "combine", float64(combine.DifferenceNS), -10, 0)
	require.Near(t, "b", float64(c.Normal.Balancedness), 20.0/30, 1e-15)
	require.Near(t, "b, perfect", float64(c.Perfect.Balancedness), 1, 0)
	if c.Normal.Steps != 2 || c.Perfect.Steps != 3 {
		t.Errorf("steps %d, %d", c.Normal.Steps, c.Perfect.Steps)
	}
}

// The layers must be the same; of the ranks, half must be there.
func TestSidesOfOtherExtent(t *testing.T) {
	for _, k := range []struct {
		what   string
		add    trace.Cell
		copies int // on further ranks of the normal side
		reason string
	}{
		{"outside layers", cell(0, 0, trace.NoID, trace.PhaseOther, 1, 0), 1, ""},
		{"another layer", cell(0, 0, 4, trace.PhaseOther, 1, 0), 1, "different layers: normal has 3, 4; perfect has 3"},
		{"half of the ranks", cell(2, 0, 3, trace.PhaseOther, 1, 0), 2, ""},
		{"fewer than half", cell(2, 0, 3, trace.PhaseOther, 1, 0), 3,
			"2 of 5 ranks in common (normal 0 to 4, perfect 0, 1)"},
	} {
		normal, perfect := alternating()
		for i := range k.copies {
			more := k.add
			more.Rank += i
			normal.Cells = append(normal.Cells, more)
		}
		c := Compare(normal, perfect, gain.Builds{})
		if c.Comparable != (k.reason == "") || !strings.Contains(strings.Join(reasons(c), "; "), k.reason) {
			t.Errorf("%s: %v, want %q", k.what, reasons(c), k.reason)
		}
		builds := Compare(normal, perfect, gain.Builds{"a", "b"})
		if warned(c, FewRanks, "") != (k.copies > 1) || warned(builds, FewRanks, "") {
			t.Errorf("%s: %v, of builds %v", k.what, c.Warnings, builds.Warnings)
		}
	}
	gate := func(experts string) []trace.KernelStat {
		return []trace.KernelStat{{Name: "void topkGatingSoftmax<float, (int)8, (int)" + experts + ", (int)4>(float *)"}}
	}
	for reason, change := range map[string]func(n, p *trace.Trace){
		"": func(n, p *trace.Trace) { n.World, p.World, n.Kernels = 2, router.NoID, gate("128") },

		"of 2 ranks, the perfect side of 4": func(n, p *trace.Trace) { n.World, p.World = 2, 4 },
		"route to 128 and 64 experts":       func(n, p *trace.Trace) { n.Kernels, p.Kernels = gate("128"), gate("64") },
		"the normal side has no MoE kernel": func(n, _ *trace.Trace) {
			for i := range n.Cells {
				n.Cells[i].Phase = trace.PhaseAttention
			}
		},
		"0 of 2 ranks in common (normal 0, 1, perfect 2, 3)": func(_, p *trace.Trace) {
			for i := range p.Cells {
				p.Cells[i].Rank += 2
			}
		},
	} {
		normal, perfect := alternating()
		change(normal, perfect)
		c := Compare(normal, perfect, gain.Builds{})
		if c.Comparable != (reason == "") || !strings.Contains(strings.Join(reasons(c), "; "), reason) {
			t.Errorf("%v, want %q", reasons(c), reason)
		}
	}
}

// Builds are compared by their steps, too, where kernels run experts and more in one; no other doubt is passed over.
func TestDoubtedBuilds(t *testing.T) {
	for _, doubt := range []string{trace.FusedExperts, trace.CountsContradict} {
		normal, perfect := alternating()
		perfect.Warnings = []router.Warning{router.Warn(doubt, "")}
		arms, builds := Compare(normal, perfect, gain.Builds{}), Compare(normal, perfect, gain.Builds{"a", "b"})
		if arms.Comparable || builds.Comparable != (doubt == trace.FusedExperts) {
			t.Errorf("%s: %v, %v", doubt, reasons(arms), reasons(builds))
		}
	}
}

// reasons are the refusals in words.
func reasons(c Comparison) (texts []string) {
	for _, w := range c.Refusals {
		texts = append(texts, caveat.Text(w))
	}
	return texts
}

func warned(c Comparison, code, subject string) bool {
	for _, w := range c.Warnings {
		if w.Code == code && w.Subject == subject {
			return true
		}
	}
	return false
}

// Without expert work on both sides balance is not judged.
func TestNoExpertWorkInOneArm(t *testing.T) {
	normal, perfect := alternating()
	for i := range normal.Cells {
		if normal.Cells[i].Phase == trace.PhaseExperts {
			normal.Cells[i].Phase = trace.PhaseOther
		}
	}
	c := Compare(normal, perfect, gain.Builds{})
	if !warned(c, "balance_not_measured", "") || !c.Comparable {
		t.Errorf("warnings %+v", c.Warnings)
	}
	perfect.Arm = ""
	if c := Compare(normal, perfect, gain.Builds{}); c.Comparable || !strings.Contains(reasons(c)[0], "balance is not proved") {
		t.Errorf("neither recorded nor measured: comparable %v, %v", c.Comparable, reasons(c))
	}
}

func TestRecordedLoadMustBeBalanced(t *testing.T) {
	normal, perfect := alternating()
	perfect.Imbalance = []imbalance.Row{
		{Layer: 3, Level: router.LevelRank, Quantity: imbalance.Load, Parts: 2, MaxOverMean: 1.2, Floor: 1},
		{Layer: 3, Level: router.LevelRank, Quantity: imbalance.Time, MaxOverMean: 1.3, Flagged: true},
		{Layer: 3, Level: router.LevelExpert, Quantity: imbalance.Load, MaxOverMean: 1.3, Flagged: true},
	}
	normal.Imbalance = []imbalance.Row{{Layer: 3, Level: router.LevelRank, Quantity: imbalance.Load, Parts: 2,
		MaxOverMean: 1.9, Flagged: true}}
	c := Compare(normal, perfect, gain.Builds{})
	if !c.Comparable {
		t.Errorf("refused for what is not the load of ranks: %v", reasons(c))
	}
	perfect.Imbalance[0].Flagged = true
	c = Compare(normal, perfect, gain.Builds{})
	if c.Comparable || !strings.Contains(reasons(c)[0], "rank load of the perfect arm has max/mean 1.200 in layer 3 (floor 1.000)") {
		t.Errorf("uneven load of the perfect arm: comparable %v, %v", c.Comparable, reasons(c))
	}
}

func TestEmptyTraces(t *testing.T) {
	c := Compare(&trace.Trace{}, &trace.Trace{}, gain.Builds{})
	if c.Comparable || len(reasons(c)) == 0 || c.Step.NormalNS.Defined() {
		t.Errorf("have %+v, want nothing to compare", c)
	}
}

func TestSidesRefused(t *testing.T) {
	for _, k := range []struct {
		normal, perfect, reason string // no reason: comparable
	}{
		{"normal", "perfect", ""}, {"", "", ""}, {"normal", "", ""}, {"", "perfect", ""},
		{"perfect", "normal", "swapped"},
		{"perfect", "perfect", "normal side records the arm \"perfect\""},
		{"normal", "normal", "perfect side records the arm \"normal\""},
		{"mixed", "perfect", "the arm \"mixed\""},
		{"perfect", "", "the arm \"perfect\""},
	} {
		normal, perfect := alternating()
		normal.Arm, perfect.Arm = k.normal, k.perfect
		normal.ArmEvidence, perfect.ArmEvidence = "environment", "environment"
		c := Compare(normal, perfect, gain.Builds{})
		if c.Comparable != (k.reason == "") || c.Comparable != (len(reasons(c)) == 0) || len(reasons(c)) > 1 ||
			!strings.Contains(strings.Join(reasons(c), "; "), k.reason) ||
			(k.normal == "" || k.perfect == "") != warned(c, "arm_unknown", "") {
			t.Errorf("%+v: comparable %v, reasons %v, warnings %+v", k, c.Comparable, reasons(c), c.Warnings)
		}
	}
	normal, perfect := alternating()
	normal.Arm, perfect.Arm = "", ""
	if c := Compare(perfect, normal, gain.Builds{}); c.Comparable || !strings.Contains(reasons(c)[0], "the sides are swapped") {
		t.Errorf("the balanced side given as normal: %v, want swapped sides", reasons(c))
	}
	normal, perfect = alternating()
	of := func(rank int) func(trace.Cell) bool { return func(c trace.Cell) bool { return c.Rank == rank } }
	perfect.Cells = slices.Concat(slices.DeleteFunc(perfect.Cells, of(0)),
		slices.DeleteFunc(slices.Clone(normal.Cells), of(1)))
	if c := Compare(normal, perfect, gain.Builds{}); c.Comparable || c.Refusals[0].Args["why"] != "same_recording" ||
		c.Refusals[0].Args["rank"] != 0.0 {
		t.Errorf("the same recording of rank 0: %v", reasons(c))
	}
	x := AssumeArm(perfect, gain.Normal)
	if AssumeArm(normal, gain.Normal) != normal || x.Arm != "normal" || perfect.Arm != "perfect" {
		t.Errorf("taken as the normal arm: %s", x.Arm)
	}
}
