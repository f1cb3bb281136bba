package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func checkNear(t *testing.T, what string, have, want, within float64) {
	t.Helper()
	if !(math.Abs(have-want) <= within) {
		t.Errorf("%s: have %.10g, want %.10g ± %.2g", what, have, want, within)
	}
}

func checkNaN(t *testing.T, what string, values ...float64) {
	t.Helper()
	for _, v := range values {
		if !math.IsNaN(v) {
			t.Errorf("%s: have %g, want undefined", what, v)
		}
	}
}

// Depression scale scores before and after a tranquilizer, 9 patients
// (Hollander, Wolfe and Chicken, example 3.1; also the example of R's
// wilcox.test). Differences before − after.
func depression() []float64 {
	before := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	after := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(before))
	for i := range d {
		d[i] = before[i] - after[i]
	}
	return d
}

// Heights of 15 pairs of cross- and self-fertilised maize plants, differences
// in eighths of an inch (Darwin, 1876; Fisher, The Design of Experiments, §§17–21).
var maize = []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}

// Extra hours of sleep on two drugs, 10 patients (Student, 1908). Holds a zero
// and a tie of absolute values.
var sleep = []float64{1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4}

func TestSignedRankPublished(t *testing.T) {
	checkNear(t, "depression: W⁺ = 40 of 45", SignedRank(depression()), 20.0/512, 1e-15)
	checkNear(t, "maize: W⁺ = 96 of 120", SignedRank(maize), 0.04125977, 1e-8) // 1352/32768
	// all nine positive: the most extreme of 2⁹
	checkNear(t, "sleep", SignedRank(sleep), 2.0/512, 1e-15)
}

// The largest sums whose two-sided probability is at most 5 % and 1 % (Wilcoxon
// and Wilcox, Some Rapid Approximate Statistical Procedures, 1964, table 2).
func TestSignedRankCriticalValues(t *testing.T) {
	table := []struct{ n, five, one int }{
		{5, -1, -1}, {6, 0, -1}, {7, 2, -1}, {8, 3, 0}, {9, 5, 1}, {10, 8, 3}, {11, 10, 5}, {12, 13, 7},
		{13, 17, 9}, {14, 21, 12}, {15, 25, 15}, {16, 29, 19}, {17, 34, 23}, {18, 40, 27}, {19, 46, 32},
		{20, 52, 37}, {21, 58, 42}, {22, 65, 48}, {23, 73, 54}, {24, 81, 61}, {25, 89, 68},
	}
	for _, row := range table {
		for tail, want := range map[float64]int{0.025: row.five, 0.005: row.one} {
			c, p, ok := rankCritical(row.n, tail)
			if c != want || ok != (want >= 0) {
				t.Errorf("n = %d, tail %g: have %d, want %d", row.n, tail, c, want)
			}
			if ok && p > tail {
				t.Errorf("n = %d: probability %g above its tail %g", row.n, p, tail)
			}
		}
	}
}

// enumerate is the second implementation: every assignment of signs, in both tails.
func enumerate(d []float64) float64 {
	var used []float64
	for _, x := range d {
		if x != 0 {
			used = append(used, x)
		}
	}
	rank := make([]float64, len(used))
	for i, x := range used {
		for _, y := range used {
			switch {
			case math.Abs(y) < math.Abs(x):
				rank[i]++
			case math.Abs(y) == math.Abs(x):
				rank[i] += 0.5
			}
		}
		rank[i] += 0.5
	}
	var observed float64
	for i, x := range used {
		if x > 0 {
			observed += rank[i]
		}
	}
	var le, ge float64
	for signs := range 1 << len(used) {
		var w float64
		for i := range used {
			if signs>>i&1 == 1 {
				w += rank[i]
			}
		}
		if w <= observed {
			le++
		}
		if w >= observed {
			ge++
		}
	}
	all := math.Ldexp(1, len(used))
	return min(1, 2*min(le, ge)/all)
}

func TestSignedRankAgainstEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for trial := range 400 {
		d := make([]float64, 1+rng.IntN(11))
		for i := range d {
			d[i] = float64(rng.IntN(9) - 3) // many ties and zeros
		}
		if slices.Max(d) == 0 && slices.Min(d) == 0 {
			checkNaN(t, "all zeros", SignedRank(d))
			continue
		}
		if checkNear(t, "P", SignedRank(d), enumerate(d), 1e-14); t.Failed() {
			t.Fatalf("trial %d: %v", trial, d)
		}
	}
}

func TestSignedRankLaws(t *testing.T) {
	d := depression()
	p := SignedRank(d)
	negated, scaled := make([]float64, len(d)), make([]float64, len(d))
	for i, x := range d {
		negated[i], scaled[len(d)-1-i] = -x, 1000*x
	}
	checkNear(t, "negated", SignedRank(negated), p, 0)
	checkNear(t, "scaled and reversed", SignedRank(scaled), p, 0)
	for _, bad := range [][]float64{nil, {}, {0, 0}, {1, math.NaN()}, {1, math.Inf(1)}} {
		checkNaN(t, "undefined", SignedRank(bad))
	}
}

// At the switch the approximation must be as good as its comment says.
func TestSignedRankApproximation(t *testing.T) {
	ranks := make([]int, MaxExactPairs)
	for i := range ranks {
		ranks[i] = 2 * (i + 1)
	}
	worst, below := 0.0, 0.0
	for s, p := range nullDistribution(ranks) {
		below += p
		if s%2 == 0 {
			worst = max(worst, math.Abs(normalTail(ranks, s)-below))
		}
	}
	if worst > 0.001/2 {
		t.Errorf("the approximation is off by %g one-sided, want at most 0.0005", worst)
	}
	// The approximate critical value continues the exact ones: 95 % of the
	// distance from the mean n(n+1)/4 to it is 1.96 standard deviations.
	c, tail, ok := rankCritical(MaxExactPairs+1, 0.025)
	const n = MaxExactPairs + 1.0
	checkNear(t, "critical value", float64(c), n*(n+1)/4-1.959964*math.Sqrt(n*(n+1)*(2*n+1)/24)-0.5, 1)
	if !ok || tail > 0.025 || tail < 0.0249 {
		t.Errorf("approximate tail %g, want just below 0.025", tail)
	}
	if c, _, ok := rankCritical(MaxExactPairs+1, 0); !ok || c < 0 {
		t.Errorf("have %d %v: the slack keeps it above 0", c, ok)
	}
	big := make([]float64, MaxExactPairs+1)
	for i := range big {
		big[i] = float64(i) - 80.25
	}
	if p := SignedRank(big); !(p > 0 && p < 0.05) {
		t.Errorf("have %g, want an approximate small p", p)
	}
}

func BenchmarkSignedRankExact(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := make([]float64, MaxExactPairs)
	for i := range d {
		d[i] = rng.NormFloat64()
	}
	for b.Loop() {
		SignedRank(d)
	}
}
