package router

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"math/rand/v2"
)

// newTarget lets the ranks fall off by a power law, rank 0 the busiest, whose
// exponent is found by bisection so that max/mean − 1 is the wanted imbalance.
func newTarget(p Problem, o PlanOptions) (Plan, error) {
	ranks := p.Layout.Ranks()
	most := mostImbalance(p)
	if !(o.Imbalance >= 0 && o.Imbalance <= most) {
		return nil, fmt.Errorf("want an imbalance from 0 to %.4g (all a token can send to one of %d ranks), have %v", most, ranks, o.Imbalance)
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
	name := fmt.Sprintf("target/1 imbalance=%v", o.Imbalance)
	return newSkew(p, name, spreadRanks(p, powerLaw(ranks, low))), nil
}

// mostImbalance is max/mean − 1 over the ranks when every token sends rank 0 as
// many slots as skew can: as many as it has experts, or with groups as many as
// fit the groups a token visits.
func mostImbalance(p Problem) float64 {
	window, laps := evenWindow(p.Shape)
	size := p.Shape.GroupSize()
	in := map[int]int{} // by group: experts of rank 0
	for _, e := range p.Layout.Held(0) {
		in[int(e)/size]++
	}
	reach := make([]int, 0, len(in))
	for g := range p.Shape.Experts / size {
		if in[g] > 0 {
			reach = append(reach, min(laps, in[g]))
		}
	}
	slots := 0
	for range min(window, len(reach)) {
		best := 0
		for i, n := range reach {
			if n > reach[best] {
				best = i
			}
		}
		slots += reach[best]
		reach[best] = 0
	}
	return float64(slots)*float64(p.Layout.Ranks())/float64(p.Shape.TopK) - 1
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

// hotspot is (1−h)/n for each of n, and h more for the hot one.
func hotspot(n int, o PlanOptions, what string) ([]float64, error) {
	if !(o.Hotness >= 0 && o.Hotness <= 1) {
		return nil, fmt.Errorf("want a hotness from 0 to 1, have %v", o.Hotness)
	}
	if o.Hot < 0 || o.Hot >= n {
		return nil, fmt.Errorf("want a hot %s from 0 to %d, have %d", what, n-1, o.Hot)
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = (1 - o.Hotness) / float64(n)
	}
	out[o.Hot] += o.Hotness
	return out, nil
}

func newRankHotspot(p Problem, o PlanOptions) (Plan, error) {
	w, err := hotspot(p.Layout.Ranks(), o, "rank")
	if err != nil {
		return nil, err
	}
	return newSkew(p, fmt.Sprintf("rank-hotspot/1 hotness=%v rank=%d", o.Hotness, o.Hot), spreadRanks(p, w)), nil
}

func newExpertHotspot(p Problem, o PlanOptions) (Plan, error) {
	w, err := hotspot(p.Shape.Experts, o, "expert")
	if err != nil {
		return nil, err
	}
	return newSkew(p, fmt.Sprintf("expert-hotspot/1 hotness=%v expert=%d", o.Hotness, o.Hot), w), nil
}

func newZipf(p Problem, o PlanOptions) (Plan, error) {
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

func newReplay(p Problem, o PlanOptions) (Plan, error) {
	if len(o.Counts) != p.Shape.Experts {
		return nil, fmt.Errorf("%w: want recorded counts of %d experts, have %d", ErrShape, p.Shape.Experts, len(o.Counts))
	}
	weights := make([]float64, len(o.Counts))
	bytes := make([]byte, 0, 8*len(o.Counts))
	some := false
	for e, n := range o.Counts {
		if n < 0 {
			return nil, fmt.Errorf("the recorded count of expert %d is %d; want 0 or more", e, n)
		}
		some = some || n > 0
		weights[e] = float64(n)
		bytes = binary.LittleEndian.AppendUint64(bytes, uint64(n))
	}
	if !some {
		return nil, fmt.Errorf("the recorded counts of all %d experts are zero: nothing to replay", len(o.Counts))
	}
	return newSkew(p, fmt.Sprintf("replay/1 counts=%08x", crc32.ChecksumIEEE(bytes)), weights), nil
}
