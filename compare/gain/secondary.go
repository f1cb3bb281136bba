package gain

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
)

// Reported is a further metric that a launch reported.
type Reported struct {
	Metric Metric
	Value  float64
}

// SecondaryGain is the gain in a metric beside the one that the verdict rests
// on. Several metrics are several chances to be fooled, so intervals and p-values are
// adjusted alike for all M of them together, by Bonferroni: the intervals have the
// confidence 1 − (1−c)/M each, and a p-value is M times that of one test.
type SecondaryGain struct {
	Metric Metric `json:"metric"`
	Gain   Gain   `json:"gain"` // positive where perfect routing is better; bounds and p-values are adjusted
}

// secondaryGains are those of the metrics that both launches of a complete pair
// reported, by name. A metric counts over the pairs that have it.
func (c Campaign) secondaryGains(complete []session, family int) []SecondaryGain {
	logs := map[Metric]*logGains{}
	var found []Metric
	for _, s := range complete {
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
				found, logs[m.Metric] = append(found, m.Metric), &logGains{}
			}
			logs[m.Metric].add(log, s.pair.Order)
		}
	}
	slices.SortFunc(found,
		func(a, b Metric) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Unit, b.Unit)) })
	rows := make([]SecondaryGain, len(found))
	m := family * len(found)
	for i, metric := range found {
		rows[i] = SecondaryGain{metric,
			logs[metric].gain(simultaneous(c.Confidence, m)).adjusted(m).atLeast(stats.MinPairs(c.Confidence))}
	}
	return rows
}
