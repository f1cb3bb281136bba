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
	"github.com/moebalance/moebalance/router/quantity"
)

// The losses of the traces are those of the comparison and the gaps between the lines of
// the steps: one number, whichever the page shows. What a layer loses in a step of
// warm-up is in none of them.
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
		steps, c := plots.StepTimes(p.arms...), diff.Compare(traces[0], traces[1])
		for i, compared := range []router.Number{c.Ceiling.StragglerLoss.NormalNS, c.Ceiling.StragglerLoss.PerfectNS} {
			name := p.arms[i].Name
			var lost router.Number
			for _, s := range traces[i].Stragglers {
				lost += s.LossNS
			}
			if math.Abs(float64(lost/compared-1)) > 1e-12 {
				t.Errorf("%s loses %v, compared %v", name, lost, compared)
			}
			if want := name[1:] + ": " + quantity.Duration(lost) + " per step"; !strings.Contains(steps.Alt, want) {
				t.Errorf("want %q, the steps say %q", want, steps.Alt)
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
		b.Lower != "after" || strings.Contains(b.Alt, "routing") {
		t.Errorf("builds are drawn as routers: %+v", b)
	}
}
