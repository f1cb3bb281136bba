package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// segmentFormat is a segment of a record of moebalance_hook.alternate.
const segmentFormat = "moebalance alternate"

// OfSegment is the result of a segment that took so long, with the numbers that its function
// returned: those in a format of their own, those that custom rules name, and those whose name
// says which direction is better. A single number is $.value.
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
	numbers := returned(value)
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		direction := impliedDirection(name, "")
		_, known := r.Metric(name)
		if !known && direction != "" && (r.Format == segmentFormat || r.Format == customFormat) {
			r.Metrics = append(r.Metrics, Metric{gain.Metric{Name: name, HigherIsBetter: direction == "higher",
				Definition: segmentFormat + "/" + name}, router.Number(numbers[name])})
		}
	}
	took := metricOf("duration", segmentFormat, "wall time of a segment", router.Number(1e3*seconds))
	r.Metrics = append(r.Metrics, took)
	if r.Primary == "" {
		r.Primary = took.Name
	}
	return r, nil
}

// returned are the numbers of an object by name.
func returned(value []byte) map[string]float64 {
	var members map[string]any
	numbers := map[string]float64{}
	_ = json.Unmarshal(value, &members) // of anything else there are none
	for name, v := range members {
		if x, ok := v.(float64); ok {
			numbers[name] = x
		}
	}
	return numbers
}

// RuleOf is the rule that reads a number of a segment which no direction is known of; empty where
// its function returned none of that name.
func RuleOf(name string, value []byte) string {
	if _, ok := returned(value)[name]; !ok {
		return ""
	}
	return fmt.Sprintf("--metric '%s:UNIT:higher=$.%[1]s', or lower", name)
}
