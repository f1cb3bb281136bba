package chance

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/moebalance/moebalance/router"
)

// subsetSampler draws the slots per expert of many tokens that each choose a
// uniformly random set of experts, without visiting a token.
//
// It halves the experts again and again. In a block of m experts it knows only
// how many tokens chose j of them, for every j. Of a token with j in the block
// the number in the left half is hypergeometric, independently of every other
// token, so the tokens of class j spread over the halves by a multinomial; and
// given how many a token chose in each half, its choices there are uniform and
// independent. A block of one expert is left with that expert's load. This is
// the exact distribution, at a cost of O(E·k) binomials whatever the tokens.
//
// Group-limited routing halves the groups first (there is one without them), with
// classes (g, j): g groups of the block chosen, and j experts in them.
type subsetSampler struct {
	shape  router.Shape
	splits map[[2]int][][]float64 // conditional, by its arguments
}

// split is conditional(m, left, j) by j, each computed once.
func (s *subsetSampler) split(m, left int) func(j int) []float64 {
	known := s.splits[[2]int{m, left}]
	if known == nil {
		known = make([][]float64, max(s.shape.TopK, s.shape.GroupLimit())+1)
		s.splits[[2]int{m, left}] = known
	}
	return func(j int) []float64 {
		if known[j] == nil {
			known[j] = conditional(m, left, j)
		}
		return known[j]
	}
}

// draw adds the loads of the given number of tokens to dst, one per expert.
func (s *subsetSampler) draw(rng *rand.Rand, tokens int64, dst []int64) {
	classes := make([]int64, (s.shape.GroupLimit()+1)*(s.shape.TopK+1))
	classes[len(classes)-1] = tokens
	s.group(rng, dst, len(dst)/s.shape.GroupSize(), classes)
}

// experts spreads the tokens of one block; classes[j] of them chose j of its
// experts.
func (s *subsetSampler) experts(rng *rand.Rand, dst, classes []int64) {
	m := len(dst)
	if m == 1 {
		dst[0] += classes[1]
		return
	}
	classes = classes[:min(m, s.shape.TopK)+1]
	both, split := make([]int64, 2*len(classes)), s.split(m, m/2)
	left, right := both[:len(classes)], both[len(classes):]
	for j, n := range classes {
		if j == 0 || n == 0 {
			continue
		}
		low := max(0, j-(m-m/2))
		spread(rng, n, split(j), func(i int, x int64) {
			left[low+i] += x
			right[j-low-i] += x
		})
	}
	s.experts(rng, dst[:m/2], left)
	s.experts(rng, dst[m/2:], right)
}

// group spreads the tokens of a block of m groups; classes[g·(k+1)+j] of them
// chose g of its groups and j experts in those.
func (s *subsetSampler) group(rng *rand.Rand, dst []int64, m int, classes []int64) {
	size, width := s.shape.GroupSize(), s.shape.TopK+1
	if m == 1 {
		s.experts(rng, dst, classes[width:2*width])
		return
	}
	left, right := make([]int64, len(classes)), make([]int64, len(classes))
	for class, n := range classes {
		g, j := class/width, class%width
		if n == 0 || g == 0 {
			continue
		}
		low := max(0, g-(m-m/2))
		spread(rng, n, s.split(m, m/2)(g), func(i int, x int64) {
			gl := low + i
			first := max(0, j-(g-gl)*size)
			spread(rng, x, s.split(g*size, gl*size)(j), func(i int, y int64) {
				left[gl*width+first+i] += y
				right[(g-gl)*width+j-first-i] += y
			})
		})
	}
	s.group(rng, dst[:m/2*size], m/2, left)
	s.group(rng, dst[m/2*size:], m-m/2, right)
}

// spread divides n tokens over the outcomes of a split, in order, and reports
// every outcome that got any.
func spread(rng *rand.Rand, n int64, conditional []float64, got func(outcome int, tokens int64)) {
	for i, c := range conditional {
		if n == 0 {
			return
		}
		x := n
		if i < len(conditional)-1 {
			x = binomial(rng, n, c)
		}
		if x > 0 {
			got(i, x)
		}
		n -= x
	}
}

// binomial draws how many of n trials succeed: where their standard deviation is at most 5, by a walk up the
// distribution; else as a normal number that is corrected for skewness (Cornish and Fisher), whose quantiles are right
// to a quarter of a trial within three deviations.
func binomial(rng *rand.Rand, n int64, p float64) int64 {
	if p > 0.5 {
		return n - binomial(rng, n, 1-p)
	}
	mean, variance := float64(n)*p, float64(n)*p*(1-p)
	if variance > 25 {
		z := rng.NormFloat64()
		return min(n, max(0, int64(math.Round(mean+math.Sqrt(variance)*z+(1-2*p)/6*(z*z-1)))))
	}
	u, mass, x := rng.Float64(), math.Exp(float64(n)*math.Log1p(-p)), int64(0)
	for far := min(n, 200); u >= mass && x < far; x++ { // the mean is at most 50
		u -= mass
		mass *= p / (1 - p) * float64(n-x) / float64(x+1)
	}
	return x
}

// conditional is the hypergeometric distribution of how many of j items, chosen
// at random among m, lie among the first left of them, from the least possible
// number max(0, j−(m−left)) up to min(j, left). Entry i is the probability of
// the i-th possible number given that none of the lower ones came true.
func conditional(m, left, j int) []float64 {
	low, high := max(0, j-(m-left)), min(j, left)
	out := make([]float64, high-low+1)
	above := 0.0
	for i := len(out) - 1; i >= 0; i-- {
		x := low + i
		mass := math.Exp(logChoose(left, x) + logChoose(m-left, j-x) - logChoose(m, j))
		above += mass
		out[i] = mass / above
	}
	return out
}

func logChoose(n, k int) float64 { return combin.LogGeneralizedBinomial(float64(n), float64(k)) }
