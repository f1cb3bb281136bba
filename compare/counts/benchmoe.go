package counts

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// readBenchPattern reads the routing pattern of TensorRT-LLM's bench_moe: slots
// from source to target rank, and a histogram over the experts of each target.
// A histogram row that does not add up to what its rank receives holds weights,
// which are scaled to it by largest remainder, as bench_moe does.
func readBenchPattern(s *source, r *Record) error {
	var p struct {
		Ranks     int       `json:"ep_size"`
		PerRank   int       `json:"experts_per_rank"`
		Dispatch  [][]int64 `json:"slot_dispatch_matrix"`
		Histogram [][]int64 `json:"expert_histogram"`
	}
	if err := s.object(&p); err != nil {
		return err
	}
	if err := bounded(p.PerRank, p.Ranks); err != nil {
		return err
	}
	if len(p.Dispatch) != p.Ranks || len(p.Histogram) != p.Ranks || p.Ranks == 0 {
		return fmt.Errorf("want %d rows (ep_size) of slot_dispatch_matrix and expert_histogram, have %d and %d", p.Ranks, len(p.Dispatch), len(p.Histogram))
	}
	r.Experts, r.Ranks = p.Ranks*p.PerRank, p.Ranks
	received := make([]int64, p.Ranks)
	for source, row := range p.Dispatch {
		if err := checkCounts(row); err != nil || len(row) != p.Ranks {
			return fmt.Errorf("slot_dispatch_matrix row %d: want %d counts, have %d (%v)", source, p.Ranks, len(row), err)
		}
		for target, n := range row {
			received[target] += n
		}
	}
	load := router.Load{}
	for target, row := range p.Histogram {
		if err := checkCounts(row); err != nil || len(row) != p.PerRank {
			return fmt.Errorf("expert_histogram row %d: want %d counts, have %d (%v)", target, p.PerRank, len(row), err)
		}
		if (router.Load{PerExpert: row}).Total() == 0 && received[target] > 0 {
			return fmt.Errorf("expert_histogram row %d is empty, but rank %d receives %d slots", target, target, received[target])
		}
		load.PerExpert = append(load.PerExpert, apportion(received[target], row)...)
	}
	r.held = []Step{{Load: load, Received: received}}
	return nil
}

// apportion divides total slots in proportion to the weights, by largest
// remainder with ties to the lower index. Weights that add up to the total come
// back as they are. It is exact, where the plans of package router divide by real
// weights, in which a tie is what rounding makes of it.
func apportion(total int64, weights []int64) []int64 {
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	out := make([]int64, len(weights))
	if sum == 0 {
		return out
	}
	remainders, order, left := make([]uint64, len(weights)), make([]int, len(weights)), total
	for i, w := range weights {
		high, low := bits.Mul64(uint64(total), uint64(w))
		share, rest := bits.Div64(high, low, sum) // fits: w ≤ sum, so share ≤ total
		out[i], remainders[i], order[i] = int64(share), rest, i
		left -= int64(share)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(remainders[b], remainders[a]), a-b) })
	for _, i := range order[:left] {
		out[i]++
	}
	return out
}
