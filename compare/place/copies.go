package place

import (
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// Copies compares two numbers of redundant experts on the same windows, each left out of what
// is learned from: windows differ more from each other than the numbers do on one.
type Copies struct {
	Ranks      int           `json:"ranks"`
	Fewer      int           `json:"fewer"`
	More       int           `json:"more"`
	Pairs      int           `json:"left_out"`
	Better     int           `json:"better"`                     // in how many of these more copies are more even
	Difference router.Number `json:"max_over_mean_difference"`   // of more copies less fewer
	Low        router.Number `json:"low"`                        // of its 95 % interval
	High       router.Number `json:"high"`                       //
	Time       router.Number `json:"predicted_time_difference"`  // mean over judged windows
	Bytes      router.Number `json:"further_bytes_per_rank"`     // that more copies take
	Pay        bool          `json:"more_are_clearly_more_even"` // and in time too, where that is predicted
}

// leastPaid is the least difference of max/mean that copies are asked for.
const leastPaid = 0.01

// compareCopies fills Result.Copies, of the default plans.
func (res *Result) compareCopies() {
	defaults := map[Plan]LeftOut{}
	for _, l := range res.Plans {
		if l.Default {
			defaults[l.Plan] = l
		}
	}
	for i, fewer := range res.Placements {
		for _, more := range res.Placements[i+1:] {
			a, b := defaults[fewer.Plan].folds, defaults[more.Plan].folds
			if !fewer.Default || !more.Default || fewer.Ranks != more.Ranks || len(a) < 2 || len(a) != len(b) {
				continue
			}
			c := Copies{Ranks: fewer.Ranks, Fewer: fewer.Redundant, More: more.Redundant, Pairs: len(a),
				Bytes: more.MemoryBytes - fewer.MemoryBytes, Time: router.Undefined()}
			d := make([]float64, len(a))
			for i := range a {
				if d[i] = b[i] - a[i]; d[i] < 0 {
					c.Better++
				}
			}
			t := stats.PairedT(d, 0.95)
			c.Difference, c.Low, c.High = router.Number(t.Estimate), router.Number(t.Low), router.Number(t.High)
			if fewer.Time != nil && more.Time != nil {
				c.Time = more.Time.Estimate - fewer.Time.Estimate
			}
			c.Pay = c.High < 0 && c.Difference <= -leastPaid && !(c.Time >= 0)
			res.Copies = append(res.Copies, c)
		}
	}
}

// Phase is what a plan of one phase does in it, and what others do there, on clusters of
// windows left out of all of them.
type Phase struct {
	Plan
	Phase counts.Phase  `json:"phase"`
	Folds int           `json:"left_out"`
	Own   router.Number `json:"own_max_over_mean"`   // learned from the rest of the phase, undefined without any
	Other router.Number `json:"other_max_over_mean"` // learned from the other phase alone
	Joint router.Number `json:"joint_max_over_mean"` // learned from both
}

// phases judges prefill and decode on plans of their own, of each other, and of both.
func (res *Result) phases(at Plan, size placement.Size, o Options) error {
	all := res.Learned
	if res.LeftOut == 0 {
		all = slices.Concat(all, res.Judged)
	}
	of := func(phase counts.Phase) []Window {
		return slices.DeleteFunc(slices.Clone(all), func(w Window) bool { return w.record.Phase != phase })
	}
	for _, phase := range [2]counts.Phase{counts.Prefill, counts.Decode} {
		other := counts.Decode
		if phase == counts.Decode {
			other = counts.Prefill
		}
		own, others := of(phase), of(other)
		if len(own) == 0 || len(others) == 0 {
			return nil
		}
		var sums [3]LeftOut
		for _, fold := range folds(clusters(own)) {
			for i, from := range [3][]Window{fold.rest, others, slices.Concat(fold.rest, others)} {
				if len(from) == 0 {
					continue
				}
				p, err := o.best(from, res.Experts, size)
				if err != nil {
					return err
				}
				sums[i].judge(p, fold.held)
			}
		}
		mean := func(l LeftOut) router.Number { return l.Judged / router.Number(l.Folds) }
		res.Phases = append(res.Phases, Phase{at, phase, sums[1].Folds, mean(sums[0]), mean(sums[1]), mean(sums[2])})
	}
	return nil
}
