package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/moebalance/moebalance/router"
)

// segmentFormat is a segment of a record of moebalance_hook.alternate.
const segmentFormat = "moebalance alternate"

// OfSegment is the result of a segment that took so long, with the numbers that its function
// returned as far as custom rules name them or they are in a format of their own. A single
// number is $.value.
func OfSegment(seconds float64, value json.RawMessage, custom []Custom) (r Result, err error) {
	value = bytes.TrimSpace(value)
	if len(value) > 0 && value[0] != '{' {
		value = fmt.Appendf(nil, `{"value":%s}`, value)
	}
	r, err = Parse(segmentFormat, bytes.NewReader(value), custom)
	if err != nil && len(custom) > 0 {
		return r, err
	}
	if err != nil || r.Format == "" {
		r = Result{Format: segmentFormat}
	}
	took := metricOf("duration", segmentFormat, "wall time of a segment", router.Number(1e3*seconds))
	r.Metrics = append(r.Metrics, took)
	if r.Primary == "" {
		r.Primary = took.Name
	}
	return r, nil
}
