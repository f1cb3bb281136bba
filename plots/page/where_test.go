package page

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
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

// The steps that a comparison counts are drawn in both arms, with its own numbers.
func TestComparedSteps(t *testing.T) {
	c := diff.Compare(captures(t, "deepseek-ep4-ranks/normal.*.sqlite"),
		captures(t, "deepseek-ep4-ranks/perfect.*.sqlite"))
	s := comparedSteps(&c)
	for arm, of := range [][]float64{s.Arms[0].MaxNS, s.Arms[0].MeanNS} {
		sum := 0.0
		for _, ns := range of {
			sum += ns
		}
		want := []router.Number{c.Ceiling.SlowestExperts.NormalNS, c.Ceiling.SlowestExperts.PerfectNS}[arm].Float64()
		if len(of) != 3 || math.Abs(sum/3/want-1) > 1e-12 {
			t.Errorf("arm %d: mean of %d steps %g, the comparison has %g", arm, len(of), sum/3, want)
		}
	}
	names := gain.Builds{"before", "after"}
	c = diff.CompareBuilds(captures(t, "deepseek-ep4-ranks/normal.*.sqlite"),
		captures(t, "deepseek-ep4-ranks/perfect.*.sqlite"), names)
	b := comparedSteps(&c)
	if len(b.Arms) == 0 || !slices.Equal(b.Arms[0].MaxNS, s.Arms[0].MaxNS) || b.Upper != "before" ||
		b.Lower != "after" || strings.Contains(b.Title, "routing") {
		t.Errorf("builds are drawn as routers: %+v", b)
	}
}
