package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// segmentFormat is a segment of a record of moebalance_hook.alternate.
const segmentFormat = "moebalance alternate"

// OfSegment is the result of a segment that took so long, with the numbers that its function
// returned: those in a format of their own, those that custom rules name, and those whose name
// says which direction is better. A single number is $.value. A function that returns nothing is
// timed; of one that returns numbers, its time is not what it measures, so one of several has to
// be chosen, and Primary is empty.
func OfSegment(seconds float64, value json.RawMessage, custom []Custom) (r Result, err error) {
	value = lone(value)
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
	switch {
	case r.Primary != "":
	case len(numbers) == 0:
		r.Primary = took.Name
	case len(numbers) == 1 && len(r.Metrics) == 2:
		r.Primary = r.Metrics[0].Name
	}
	return r, nil
}

// ErrUnchosen is of numbers of a segment of which none is chosen.
var ErrUnchosen = errors.New("no --metric")

// Choose says how to name one of the numbers of a segment.
func Choose(value []byte) error {
	value = lone(value)
	var names, flags []string
	for _, name := range slices.Sorted(maps.Keys(returned(value))) {
		flag := "--metric " + name
		if impliedDirection(name, "") == "" {
			flag = RuleOf(name, value)
		}
		names, flags = append(names, name), append(flags, flag)
	}
	return fmt.Errorf("%w chooses among %s; try: %s", ErrUnchosen, strings.Join(names, ", "), strings.Join(flags, "; "))
}

// lone is what a function returned as an object, in which a lone number is its value.
func lone(value []byte) []byte {
	if value = bytes.TrimSpace(value); len(value) > 0 && value[0] != '{' {
		return fmt.Appendf(nil, `{"value":%s}`, value)
	}
	return value
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
	return fmt.Sprintf("--metric '%s::higher=$.%[1]s' (or lower)", name)
}
