package plan

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// newTarget lets the ranks fall off by a power law, rank 0 the busiest and the
// next ones in other groups, whose exponent is found by bisection so that
// max/mean − 1 is the wanted imbalance.
func newTarget(p Problem, o Options) (Plan, error) {
	ranks := p.Layout.Ranks()
	most := mostImbalance(p)
	if !(o.Imbalance >= 0 && o.Imbalance <= most) {
		return nil, fmt.Errorf("want an imbalance from 0 to %.4g %% (all a token can send to one of %d ranks), have %.4g %%", 100*most, ranks, 100*o.Imbalance)
	}
	low, high := 0.0, 1e4
	for range 200 {
		mid := (low + high) / 2
		if law := powerLaw(ranks, mid); float64(ranks)*law[0]-1 < o.Imbalance {
			low = mid
		} else {
			high = mid
		}
	}
	weights := make([]float64, ranks)
	for i, r := range groupsApart(p) {
		weights[r] = powerLaw(ranks, low)[i]
	}
	s := newSkew(p, fmt.Sprintf("target/1 imbalance=%v", o.Imbalance), spreadRanks(p, weights))
	return s, s.reaches(o.Imbalance)
}

// reaches is an error if the groups of the busiest ranks are too full to let
// them have their share.
func (s *skew) reaches(imbalance float64) error {
	b := router.BalanceOf(s.problem.Layout.RankLoad(s.perExpert()))
	want := (1 + imbalance) * float64(b.Total) / float64(b.Parts)
	if got := float64(b.Max); got < want-float64(s.problem.Shape.TopK) {
		return fmt.Errorf("an imbalance of %.4g %% would need %.0f slots on the busiest rank, and what a token may send to one group allows %.0f; want less", 100*imbalance, want, got)
	}
	return nil
}

// groupsApart orders the ranks so that neighbours hold experts of different
// groups, as far as there are any: the first rank of each group, then the second
// ones, and so on. Rank 0 comes first.
func groupsApart(p Problem) []int {
	order := make([]int, p.Layout.Ranks())
	place := make([]int, len(order)) // among the ranks that begin in the same group
	seen := map[int]int{}
	for r := range order {
		order[r] = r
		if held := p.Layout.Held(r); len(held) > 0 {
			g := int(held[0]) / p.Shape.GroupSize()
			place[r] = seen[g]
			seen[g]++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return place[a] - place[b] })
	return order
}

// mostImbalance is max/mean − 1 over the ranks when every token sends rank 0 as
// much as skew can: as many slots as it has experts, or with groups as fit the
// groups a token visits.
func mostImbalance(p Problem) float64 {
	window := visitsPerToken(p.Shape)
	inGroup := make([]float64, p.Shape.Experts/p.Shape.GroupSize())
	for _, e := range p.Layout.Held(0) {
		inGroup[int(e)/p.Shape.GroupSize()]++
	}
	slices.Sort(inGroup)
	slots := 0.0
	for _, n := range inGroup[len(inGroup)-window:] {
		slots += min(n, float64(p.Shape.TopK)/float64(window))
	}
	return slots*float64(p.Layout.Ranks())/float64(p.Shape.TopK) - 1
}

// powerLaw is i⁻ˢ for i from 1 to n, divided by their sum.
func powerLaw(n int, s float64) []float64 {
	out, sum := make([]float64, n), 0.0
	for i := range out {
		out[i] = math.Pow(float64(i+1), -s)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// spreadRanks gives each rank's weight to its copies in equal parts.
func spreadRanks(p Problem, weights []float64) []float64 {
	out := make([]float64, p.Shape.Experts)
	for r, w := range weights {
		held := p.Layout.Held(r)
		for _, e := range held {
			out[e] += w / float64(len(held))
		}
	}
	return out
}

// newHotspot gives (1−h)/n of the slots to each of n ranks or experts, and h more to
// the hot one. It is an error if the hot one gets less than its share: a token has no
// expert twice and few groups, and copies on other ranks take their part.
func newHotspot(p Problem, o Options, what string) (Plan, error) {
	n := p.Shape.Experts
	if what == "rank" {
		n = p.Layout.Ranks()
	}
	if !(o.Hotness >= 0 && o.Hotness <= 1) {
		return nil, fmt.Errorf("want a hotness from 0 to 100 %%, have %.4g %%", 100*o.Hotness)
	}
	if o.Hot < 0 || o.Hot >= n {
		return nil, fmt.Errorf("want a hot %s from 0 to %d, have %d", what, n-1, o.Hot)
	}
	even := 1 / float64(n)
	weights := slices.Repeat([]float64{(1 - o.Hotness) / float64(n)}, n)
	weights[o.Hot] += o.Hotness
	share := weights[o.Hot]
	if what == "rank" {
		weights = spreadRanks(p, weights)
	}
	s := newSkew(p, fmt.Sprintf("%s-hotspot/1 hotness=%v %s=%d", what, o.Hotness, what, o.Hot), weights)
	slots := s.perExpert()
	if what == "rank" {
		slots = p.Layout.RankLoad(slots)
	}
	got, total := float64(slots[o.Hot]), float64(p.total()*p.Shape.TopK)
	if o.Hotness == 0 || got >= share*total-float64(p.Shape.TopK) {
		return s, nil
	}
	most := max(0, (got/total-even)/(1-even))
	return nil, fmt.Errorf("want a hotness of at most %.3g %%, have %.4g %%: distinct experts, few groups per token and copies elsewhere allow the hot one %.0f of %.0f slots", 100*most, 100*o.Hotness, got, total)
}

func newZipf(p Problem, o Options) (Plan, error) {
	if !(o.Exponent >= 0 && o.Exponent <= 100) {
		return nil, fmt.Errorf("want a zipf exponent from 0 to 100, have %v", o.Exponent)
	}
	weights := powerLaw(p.Shape.Experts, o.Exponent)
	if o.Seed != 0 {
		random := rand.NewPCG(o.Seed, 0)
		for i := len(weights) - 1; i > 0; i-- { // Fisher and Yates
			j, _ := bits.Mul64(random.Uint64(), uint64(i+1))
			weights[i], weights[j] = weights[j], weights[i]
		}
	}
	return newSkew(p, fmt.Sprintf("zipf/1 exponent=%v seed=%d", o.Exponent, o.Seed), weights), nil
}

func newReplay(p Problem, o Options) (Plan, error) {
	if len(o.Counts) != p.Shape.Experts {
		return nil, fmt.Errorf("%w: want recorded counts of %d experts, have %d", router.ErrShape, p.Shape.Experts, len(o.Counts))
	}
	weights := make([]float64, len(o.Counts))
	for e, n := range o.Counts {
		if n < 0 {
			return nil, fmt.Errorf("the recorded count of expert %d is %d; want 0 or more", e, n)
		}
		weights[e] = float64(n)
	}
	if slices.Max(o.Counts) == 0 {
		return nil, fmt.Errorf("the recorded counts of all %d experts are zero: nothing to replay", len(o.Counts))
	}
	bytes, err := binary.Append(nil, binary.LittleEndian, o.Counts)
	if err != nil {
		return nil, err
	}
	return newSkew(p, fmt.Sprintf("replay/1 counts=%08x", crc32.ChecksumIEEE(bytes)), weights), nil
}
