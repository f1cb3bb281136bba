package place

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router/placement"
)

// The balancers of vllm-ascend that learn from several windows, written anew after reading
// vllm_ascend/eplb/core/policy/policy_flashlb.py @d12d984bbaad and
// vllm_ascend/distributed/eplb/policy/stair.py @02726becc0c7 (pull request 16183), to see on the
// same clusters left out what the default is worth. Of FlashLB without the regrouping of
// copies, which it drops where that is no better; of STAIR without the beam search over copies
// and the limits on moves, which bind it, and with z = 1.

// flashLB gives a further copy to the expert whose copying lowers the hottest copy most, added
// over windows, and each copy, the hottest experts first, to the rank where the sum over
// windows of the busiest rank stays least.
func flashLB(windows [][]float64, slots, ranks int) []int32 {
	experts := len(windows[0])
	copies := slices.Repeat([]float64{1}, experts)
	for range slots - experts {
		gain := make([]float64, experts)
		for _, load := range windows {
			first, second := -1, 0.0
			for e := range load {
				if v := load[e] / copies[e]; first < 0 || v > load[first]/copies[first] {
					if first >= 0 {
						second = load[first] / copies[first]
					}
					first = e
				} else {
					second = max(second, v)
				}
			}
			gain[first] += load[first]/copies[first] - max(second, load[first]/(copies[first]+1))
		}
		copies[slices.Index(gain, slices.Max(gain))]++
	}
	hot := func(e int) (sum float64) {
		for _, load := range windows {
			sum += load[e] / copies[e]
		}
		return sum
	}
	on := make([][]float64, len(windows))
	for w := range on {
		on[w] = make([]float64, ranks)
	}
	return packed(copies, ranks, hot, func(e, r int) (score float64) {
		for w, load := range windows {
			v := load[e] / copies[e]
			total := 1e-2
			for _, n := range on[w] {
				total += (n + v) / float64(ranks)
			}
			score += max(on[w][r]+v, slices.Max(on[w])) / total
		}
		return score
	}, func(e, r int) {
		for w, load := range windows {
			on[w][r] += load[e] / copies[e]
		}
	})
}

// stair takes mean + z·sd for the load: copies go to the largest per copy, and each copy to the
// rank where mean + z·sd of the rank, with covariances, stays least.
func stair(windows [][]float64, slots, ranks int, z float64) []int32 {
	experts, n := len(windows[0]), float64(len(windows))
	mean, copies := make([]float64, experts), slices.Repeat([]float64{1}, experts)
	for _, load := range windows {
		for e, v := range load {
			mean[e] += v / n
		}
	}
	covariance := func(e, f int) (sum float64) {
		for _, load := range windows {
			sum += (load[e] - mean[e]) * (load[f] - mean[f]) / max(1, n-1)
		}
		return sum
	}
	risk := make([]float64, experts)
	for e := range risk {
		risk[e] = mean[e] + z*math.Sqrt(covariance(e, e))
	}
	for range slots - experts {
		most := -1
		for e := range risk {
			if copies[e] < float64(ranks) && (most < 0 || risk[e]/copies[e] > risk[most]/copies[most]) {
				most = e
			}
		}
		copies[most]++
	}
	means, variances, held := make([]float64, ranks), make([]float64, ranks), make([][]int, ranks)
	with := func(e, r int) (m, v float64) {
		m, v = means[r]+mean[e]/copies[e], variances[r]+covariance(e, e)/(copies[e]*copies[e])
		for _, f := range held[r] {
			v += 2 * covariance(e, f) / (copies[e] * copies[f])
		}
		return m, max(v, 0)
	}
	return packed(copies, ranks, func(e int) float64 { return risk[e] / copies[e] }, func(e, r int) float64 {
		m, v := with(e, r)
		return m + z*math.Sqrt(v)
	}, func(e, r int) {
		means[r], variances[r] = with(e, r)
		held[r] = append(held[r], e)
	})
}

// packed puts all copies of the hottest expert first, each on the rank with room of the least
// score that lacks it, or if there is none on any with room.
func packed(copies []float64, ranks int, hot func(e int) float64, score func(e, r int) float64,
	put func(e, r int)) []int32 {
	order, slots := make([]int, len(copies)), 0
	for e := range order {
		order[e], slots = e, slots+int(copies[e])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(hot(b), hot(a)) })
	held := make([][]int32, ranks)
	for _, e := range order {
		for range int(copies[e]) {
			to, least := -1, math.Inf(1)
			for pass := 0; to < 0; pass++ {
				for r := range held {
					if len(held[r]) == slots/ranks || pass == 0 && slices.Contains(held[r], int32(e)) {
						continue
					}
					if s := score(e, r); s < least {
						to, least = r, s
					}
				}
			}
			put(e, to)
			held[to] = append(held[to], int32(e))
		}
	}
	return slices.Concat(held...)
}

// On LMSYS's prefill clusters left out, the default plan is better than both, and both are
// better than EPLB.
func TestRivals(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	windows := lmsysWindows(t, "prefill")
	size := placement.Size{Slots: 288, Ranks: 32}
	rows := map[string]*LeftOut{}
	for out := range windows {
		held, rest := windows[out:out+1], slices.Concat(windows[:out:out], windows[out+1:])
		l := lessonOf(rest, 256)
		for name, learn := range map[string]func([][]float64) ([]int32, error){
			PlanRobust: func(w [][]float64) ([]int32, error) { return placement.Robust(w, size, "") },
			"flashlb":  func(w [][]float64) ([]int32, error) { return flashLB(scaled(w), 288, 32), nil },
			"stair":    func(w [][]float64) ([]int32, error) { return stair(scaled(w), 288, 32, 1), nil },
			PlanEPLB: func(w [][]float64) ([]int32, error) {
				sum := make([]int64, 256)
				for _, share := range w {
					for e, v := range share {
						sum[e] += int64(1e9 * v)
					}
				}
				return placement.EPLB(sum, size)
			},
		} {
			p := newPlan("", name)
			err := p.replace(slices.Collect(maps.Keys(l.shares)), 256, size,
				func(layer int) ([]int32, error) { return learn(l.shares[layer]) })
			if err != nil {
				t.Fatal(name, err)
			}
			if rows[name] == nil {
				rows[name] = &LeftOut{}
			}
			rows[name].judge(p, held)
		}
	}
	for name, r := range rows {
		t.Logf("%s: %.4f, p95 over layers %.4f, worst %.4f", name, r.Judged/4, r.P95/4, r.Worst)
	}
	if best := rows[PlanRobust]; best.Judged > rows["stair"].Judged || best.Judged > rows["flashlb"].Judged ||
		best.Worst > min(rows["stair"].Worst, rows["flashlb"].Worst) {
		t.Error("the default is not the best")
	}
	if rows["stair"].Judged > rows[PlanEPLB].Judged || rows["flashlb"].Judged > rows[PlanEPLB].Judged {
		t.Error("EPLB is better than what learns from several windows")
	}
}

// scaled are shares as loads of a million slots.
func scaled(windows [][]float64) [][]float64 {
	out := make([][]float64, len(windows))
	for w, share := range windows {
		for _, v := range share {
			out[w] = append(out[w], 1e6*v)
		}
	}
	return out
}
