package gain

import (
	"cmp"
	"math"
	"slices"
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
func (c Campaign) secondaryGains(complete, pairs []pairResult, family int) []SecondaryGain {
	var found []Metric
	for _, s := range pairs {
		for _, m := range s.reported() {
			if m.Metric != c.Metric && !slices.Contains(found, m.Metric) {
				found = append(found, m.Metric)
			}
		}
	}
	slices.SortFunc(found,
		func(a, b Metric) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Unit, b.Unit)) })
	logs := make(map[Metric]logGains)
	for _, m := range found {
		if l := logsOf(complete, func(s pairResult) float64 { return s.logOf(m) }); len(l.all()) > 0 {
			logs[m] = l
		}
	}
	found = slices.DeleteFunc(found, func(m Metric) bool { return len(logs[m].all()) == 0 })
	rows := make([]SecondaryGain, len(found))
	n := family * len(found)
	for i, m := range found {
		rows[i] = SecondaryGain{m, logs[m].gain(simultaneous(c.Confidence, n)).adjusted(n).atLeast(c.least())}
	}
	return rows
}

// reported are the further metrics of a pair's normal launch.
func (s pairResult) reported() []Reported {
	if s.normal == nil {
		return nil
	}
	return s.normal.Secondary
}

// logOf is the log gain of a pair of launches in a further metric, NaN where not both report it.
func (s pairResult) logOf(m Metric) float64 {
	var values [2]float64
	for i, l := range s.launches() {
		at := slices.IndexFunc(l.Secondary, func(r Reported) bool { return r.Metric == m })
		if at < 0 {
			return math.NaN()
		}
		values[i] = l.Secondary[at].Value
	}
	return logGain(values[0], values[1], m.HigherIsBetter)
}
