package page

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
)

// What the layers of the figure lose is what the answer says, and the compute that all
// layers lose is the comparison's.
func TestLossesAgree(t *testing.T) {
	normal, perfect := captures(t, "deepseek-ep4-ranks/normal.*.sqlite"),
		captures(t, "deepseek-ep4-ranks/perfect.*.sqlite")
	loop, looped := captures(t, "gptoss-ep4-loop/normal.sqlite"), captures(t, "gptoss-ep4-loop/perfect.sqlite")
	for _, traces := range [][2]*nsys.Trace{{normal, perfect}, {loop, looped}} {
		p, err := build(programOf(source.Item{Name: "n", Trace: traces[0]}, source.Item{Name: "p", Trace: traces[1]}),
			0)
		if err != nil {
			t.Fatal(err)
		}
		drawn, c := plots.LayerLosses(p.arms...), diff.Compare(traces[0], traces[1])
		for i, compared := range []router.Number{c.Ceiling.StragglerLoss.NormalNS, c.Ceiling.StragglerLoss.PerfectNS} {
			var lost, bars float64
			for _, s := range traces[i].Stragglers {
				lost += s.LossNS.Float64()
			}
			if math.Abs(lost/compared.Float64()-1) > 1e-12 {
				t.Errorf("%s loses %v, compared %v", p.arms[i].Name, lost, compared)
			}
			for _, ns := range drawn.Series[i].Values {
				bars += ns
			}
			if want := traces[i].Bound.LossNS.Float64(); math.Abs(bars/want-1) > 1e-9 {
				t.Errorf("%s: the bars add up to %v, the answer says %v", p.arms[i].Name, bars, want)
			}
		}
	}
}

// The contents name the number that the headline is about: where launches are late the waiting,
// though the line ends with the gain.
func TestKeyOfTheAnswer(t *testing.T) {
	waiting := answer.NumberOf("waiting per step", 2.88e6, answer.NS, answer.Measured)
	even := answer.NumberOf("gain of even ranks", 0.033, answer.Fraction, answer.Inferred)
	p := program{Answer: answer.Answer{Verdict: answer.Uneven, Numbers: []answer.Number{waiting, even},
		Line: "Rank 2 is overloaded; perfectly even ranks would gain about 3.3 %."}}
	if got := p.Key(); got != "3.3 %" {
		t.Errorf("uneven: %s", got)
	}
	if p.Answer.Verdict = answer.LateLaunches; p.Key() != "2.88 ms" {
		t.Errorf("late launches: %s", p.Key())
	}
}
