package logits

import (
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// Certificate says how even the loads of a periodic entry are for every number of
// tokens: counted from the stored experts of all ranks after each row, and carried
// beyond the last row where the table is level there.
type Certificate struct {
	plan.Proof
	// Unequal samples batches in which the ranks hold different numbers of tokens,
	// which no table can level, as no rank knows the others'. Empty in tep mode.
	Unequal []Unequal `json:"unequal"`
}

// Unequal is the balance of seeded random batches, in which each rank holds 0 to
// MostTokens tokens, all numbers equally likely: the mean of max/mean over the batches, and
// the worst. Batches without any token are left out.
type Unequal struct {
	MostTokens             int           `json:"most_tokens"`
	Batches                int           `json:"batches"`
	RankMaxOverMean        router.Number `json:"rank_max_over_mean"`
	RankMaxOverMeanWorst   router.Number `json:"rank_max_over_mean_worst"`
	ExpertMaxOverMean      router.Number `json:"expert_max_over_mean"`
	ExpertMaxOverMeanWorst router.Number `json:"expert_max_over_mean_worst"`
}

// sampled are the MostTokens of Unequal: decode, small batches, prefill.
var sampled = []int{8, 64, 256}

const sampledBatches = 32

// certify counts a table by the stored experts of each rank.
func certify(r Record, ids [][]int32) *Certificate {
	k := r.Spec.Gate.Shape.TopK
	row := func(source, token int) []int32 { return ids[source][token*k:][:k] }
	c := &Certificate{Proof: plan.ProveRows(r.Spec.problem(AnyTokens), r.Rows, r.Period, row), Unequal: []Unequal{}}
	if r.Spec.Mode == router.DEP && r.Spec.Layout.Ranks() > 1 && r.Rows > 0 {
		for _, most := range sampled {
			c.Unequal = append(c.Unequal, unequal(r, ids, most))
		}
	}
	return c
}

func unequal(r Record, ids [][]int32, most int) Unequal {
	k, draw := r.Spec.Gate.Shape.TopK, rand.New(rand.NewPCG(uint64(most), 1))
	var ranks, experts []float64
	for range sampledBatches {
		load := router.NewLoad(r.Spec.Gate.Shape.Experts)
		for _, own := range ids {
			for left := draw.IntN(most+1) * k; left > 0; left -= len(own) {
				load.Add(own[:min(left, len(own))])
			}
		}
		if load.Total() > 0 {
			ranks = append(ranks, float64(load.Ranks(r.Spec.Layout).MaxOverMean))
			experts = append(experts, float64(load.Experts().MaxOverMean))
		}
	}
	u := Unequal{MostTokens: most, Batches: len(ranks)}
	u.RankMaxOverMean, u.RankMaxOverMeanWorst = meanAndWorst(ranks)
	u.ExpertMaxOverMean, u.ExpertMaxOverMeanWorst = meanAndWorst(experts)
	return u
}

func meanAndWorst(list []float64) (mean, worst router.Number) {
	if len(list) == 0 {
		return router.Undefined(), router.Undefined()
	}
	return router.Number(stat.Mean(list, nil)), router.Number(slices.Max(list))
}
