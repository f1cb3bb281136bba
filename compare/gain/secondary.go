package gain

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Reported is a further metric that a launch reported.
type Reported struct {
	Metric Metric
	Value  float64
}

// SecondaryGain is the gain in a metric beside the one that the verdict rests
// on. Several metrics are several chances to be fooled, so PHolm, the
// signed-rank p of all secondary metrics together by Holm's method, is the one
// to read.
type SecondaryGain struct {
	Metric Metric        `json:"metric"`
	Gain   Gain          `json:"gain"` // positive where perfect routing is better; without the methods that draw
	PHolm  router.Number `json:"p_holm"`
}

// secondaryGains are those of the metrics that both launches of a complete pair
// reported, by name. A metric counts over the pairs that have it.
func (c Campaign) secondaryGains(sessions []session) []SecondaryGain {
	logs := map[Metric][]float64{}
	var found []Metric
	for _, s := range sessions {
		if s.pair(c.Metric).Status != PairComplete {
			continue
		}
		for _, m := range s.normal.Secondary {
			i := slices.IndexFunc(s.perfect.Secondary, func(o Reported) bool { return o.Metric == m.Metric })
			if i < 0 || m.Metric == c.Metric {
				continue
			}
			log := logGain(m.Value, s.perfect.Secondary[i].Value, m.Metric.HigherIsBetter)
			if math.IsNaN(log) {
				continue
			}
			if logs[m.Metric] == nil {
				found = append(found, m.Metric)
			}
			logs[m.Metric] = append(logs[m.Metric], log)
		}
	}
	slices.SortFunc(found, func(a, b Metric) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Unit, b.Unit)) })
	rows := make([]SecondaryGain, len(found))
	p := make([]float64, len(found))
	for i, m := range found {
		rows[i] = SecondaryGain{Metric: m, Gain: gainOfLogs(logs[m], c.Confidence)}
		p[i] = float64(rows[i].Gain.P)
	}
	for i, adjusted := range stats.Holm(p) {
		rows[i].PHolm = router.Number(adjusted)
	}
	return rows
}
