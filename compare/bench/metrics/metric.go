package metrics

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Metric is one number a benchmark reported: the vocabulary's word, such as
// "output_throughput" or "ttft_p99", without a unit where a custom metric has none, and a
// definition that tells apart numbers that share a name but are computed by different rules,
// above all percentiles: "ttft_p99/sorted[floor(n·q)]" of trtllm-bench is not
// "ttft_p99/linear" of a serving client.
type Metric struct {
	gain.Metric
	Value router.Number `json:"value"` // undefined where the output says NaN or an infinity
}

// Comparable returns nil when the two numbers measure the same thing, and
// otherwise an error that says what differs. Values are not looked at.
func (m Metric) Comparable(other Metric) error {
	switch {
	case m.Name != other.Name:
		return fmt.Errorf("metrics %q and %q are different quantities", m.Name, other.Name)
	case m.Definition != other.Definition:
		return fmt.Errorf("metric %q is defined as %q on one side and %q on the other: compare outputs of the same tool",
			m.Name, m.Definition, other.Definition)
	case m.Unit != other.Unit || m.HigherIsBetter != other.HigherIsBetter:
		return fmt.Errorf("metric %q is in %q on one side and %q on the other", m.Name, m.Unit, other.Unit)
	}
	return nil
}
