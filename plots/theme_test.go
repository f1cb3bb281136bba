package plots

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
)

// luminance is that of WCAG 2, of a color such as #1D232A.
func luminance(hex string) float64 {
	n, _ := strconv.ParseUint(hex[1:], 16, 32)
	sum := 0.0
	for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
		v := float64(n>>(8*i)&0xff) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

func contrast(a, b string) float64 {
	x, y := luminance(a)+0.05, luminance(b)+0.05
	return max(x, y) / min(x, y)
}

// In dark mode every color that figures name is replaced, and stands out from the
// ground: text by 4.5 to 1, arms and phases by 3 to 1, as WCAG 2 asks. Phases, which keep
// their colors, do so on both grounds.
func TestDarkMode(t *testing.T) {
	css, err := os.ReadFile("page/page.css")
	if err != nil {
		t.Fatal(err)
	}
	dark := map[string]string{}
	for _, m := range regexp.MustCompile(`--fig-([a-z-]+): (#[0-9a-f]{6})`).FindAllStringSubmatch(string(css), -1) {
		dark[m[1]] = m[2]
	}
	if len(themes) != len(dark) {
		t.Errorf("figures name %d colors, the page sets %d", len(themes), len(dark))
	}
	least := map[string]float64{"ink": 4.5, "soft": 4.5, "grid": 1.2, "paper": 1}
	for light, name := range themes {
		want := least[name]
		if want == 0 {
			want = 3
		}
		if got := contrast(dark[name], dark["paper"]); got < want {
			t.Errorf("%s %s on the dark ground: contrast %.2f, want %g", name, dark[name], got, want)
		}
		if got := contrast(light, "#ffffff"); got < min(want, 3) && name != "wait" {
			t.Errorf("%s %s on white: contrast %.2f", name, light, got)
		}
	}
	for phase, c := range phaseColors {
		hex := fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B)
		if themes[hex] != "" {
			hex = dark[themes[hex]]
		}
		if got := contrast(hex, dark["paper"]); got < 3 {
			t.Errorf("phase %s on the dark ground: contrast %.2f", phase, got)
		}
	}
	f, err := BarChart(BarSpec{Groups: []int{0}, Series: []BarSeries{{gain.Normal.Label(), []float64{1}, nan},
		{gain.Perfect.Label(), []float64{1}, nan}}, Mean: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"learned", "balanced", "learned-line", "ink"} {
		if !strings.Contains(f.Inline(), "var(--fig-"+name+",#") || strings.Contains(render(t, f.SVG), "var(") {
			t.Errorf("%s: a figure on a page names its colors, one alone does not", name)
		}
	}
}

// No two meanings on a page share a color.
func TestOneColorPerMeaning(t *testing.T) {
	seen := map[string]string{}
	add := func(meaning string, c any) {
		if was, taken := seen[fmt.Sprint(c)]; taken {
			t.Errorf("%s and %s have the same color", was, meaning)
		}
		seen[fmt.Sprint(c)] = meaning
	}
	add("learned", armColor(gain.Normal.Label(), 1))
	add("balanced", armColor(gain.Perfect.Label(), 0))
	add("waiting", waitInk)
	for i := range 2 { // the third is that of text
		add("another arm", armColor("a.json", i))
	}
	for phase, c := range phaseColors {
		add(phase, c)
	}
}
