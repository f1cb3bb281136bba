package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// customFormat is the format of an output that only custom metrics were read from.
const customFormat = "custom"

// Custom is a metric the user finds in an output by a pattern of their own.
type Custom struct {
	Name           string
	Unit           string
	HigherIsBetter bool
	// Exactly one of the two is set.
	Pattern *regexp.Regexp // matched against every line; the first group, or the whole match, is the number
	Path    []string       // members from the root of any JSON object; a number selects an element of a list
}

// ParseCustom reads NAME[:UNIT[:higher|lower]]=PATTERN. A pattern that begins
// with "$." is a path into a JSON object ($.performance.total_latency_ms, also
// $.runs[0].latency and $['key.with.dots']), anything else a regular expression
// (RE2) whose first group is the number. Without a direction, the unit or the name must
// tell a time, of which lower is better, from a rate: NAME:ms, latency, throughput.
func ParseCustom(s string) (Custom, error) {
	name, pattern, ok := strings.Cut(s, "=")
	if !ok || name == "" || pattern == "" {
		return Custom{}, fmt.Errorf("metric '%s': want NAME:UNIT:higher=REGEX or NAME:UNIT:lower=$.json.path", s)
	}
	parts := strings.Split(name, ":")
	c := Custom{Name: parts[0]}
	if c.Name == "" || len(parts) > 3 {
		return Custom{}, fmt.Errorf("metric '%s': want NAME, NAME:UNIT or NAME:UNIT:lower before the equals sign", s)
	}
	if len(parts) > 1 {
		c.Unit = parts[1]
	}
	var err error
	if strings.HasPrefix(pattern, "$.") || strings.HasPrefix(pattern, "$[") {
		c.Path, err = parsePath(pattern[1:])
	} else {
		c.Pattern, err = regexp.Compile(pattern)
	}
	if err != nil {
		return Custom{}, fmt.Errorf("metric %q: %w", c.Name, err)
	}
	direction := append(parts, "", "")[2]
	if direction == "" {
		direction = impliedDirection(c.Name, c.Unit)
	}
	switch direction {
	case "higher", "lower":
		c.HigherIsBetter = direction == "higher"
	default:
		return Custom{}, fmt.Errorf("metric '%s': want a direction: '%s:%s:higher=%s' or '%[2]s:%[3]s:lower=%[4]s'", s,
			c.Name, c.Unit, pattern)
	}
	return c, nil
}

var (
	timeUnit = regexp.MustCompile(`(?i)^(ns|us|µs|μs|ms|s|secs?|seconds?|mins?|minutes?|h|hours?)(/|$)`)
	rateUnit = regexp.MustCompile(`(?i)/(s|secs?|seconds?|mins?|minutes?|h|hours?)(/|$)|ps$`)
	rateName = regexp.MustCompile(`(?i)throughput|goodput|rate|speed|per_sec|[tqr]ps`)
	timeName = regexp.MustCompile(
		`(?i)latency|time|ttft|tpot|itl|e2e|duration|delay|wait|elapsed|_(ns|us|ms|s|sec|seconds)$`)
)

// impliedDirection is that of a time or a rate, by its unit, else by its name; ""
// where neither tells.
func impliedDirection(name, unit string) string {
	switch {
	case timeUnit.MatchString(unit):
		return "lower"
	case rateUnit.MatchString(unit), rateName.MatchString(name):
		return "higher"
	case timeName.MatchString(name):
		return "lower"
	}
	return ""
}

// ParseWanted reads the name of a metric, or a rule as ParseCustom takes it, and
// returns the name and the rule, if it is one.
func ParseWanted(s string) (name string, rule []Custom, err error) {
	if !strings.Contains(s, "=") {
		if strings.ContainsAny(s, ` ()[]\|*+?^$`) {
			return "", nil, fmt.Errorf(
				"metric '%s': want the name of a reported metric, NAME:UNIT:higher=REGEX or NAME:UNIT:lower=$.json.path", s)
		}
		return s, nil, nil
	}
	c, err := ParseCustom(s)
	if err != nil {
		return "", nil, err
	}
	return c.Name, []Custom{c}, nil
}

var pathStep = regexp.MustCompile(`^(?:\.([^.\[\]'"]+)|\[(\d+)\]|\['([^']+)'\]|\["([^"]+)"\])`)

func parsePath(s string) ([]string, error) {
	var path []string
	for rest := s; rest != ""; {
		m := pathStep.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("path %q: want .key, [0] or ['key'] at %q", "$"+s, rest)
		}
		path = append(path, m[1]+m[2]+m[3]+m[4])
		rest = rest[len(m[0]):]
	}
	return path, nil
}

// rule is the pattern or path as text.
func (c Custom) rule() string {
	if c.Pattern != nil {
		return c.Pattern.String()
	}
	return "$." + strings.Join(c.Path, ".")
}

// text looks for the pattern in a line.
func (c Custom) text(rec record, rep *report) {
	if c.Pattern == nil {
		return
	}
	m := c.Pattern.FindStringSubmatch(rec.raw)
	if m == nil {
		return
	}
	found := m[0]
	if len(m) > 1 {
		found = m[1]
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(found, ",", ""), 64)
	if err != nil {
		rep.fail(rec.line, input.Error{Expected: "a number where the rule of metric " + strconv.Quote(c.Name) +
			" matches", Found: strconv.Quote(found)})
		return
	}
	n, _ := number(v)
	rep.metric(rec.line, Metric{gain.Metric{Name: c.Name, Unit: c.Unit, HigherIsBetter: c.HigherIsBetter,
		Definition: "custom/" + c.rule()}, n})
}

// object follows the path.
func (c Custom) object(rec record, rep *report) {
	if c.Path == nil {
		return
	}
	var v any = rec.doc
	for _, step := range c.Path {
		var ok bool
		if v, ok = rep.part(rec.line, v, step); !ok {
			return
		}
	}
	n, ok := number(v)
	if !ok {
		rep.fail(rec.line, input.Error{Expected: "a number at " + c.rule() + " for metric " + strconv.Quote(c.Name),
			Found: kind(v)})
		return
	}
	rep.metric(rec.line, Metric{gain.Metric{Name: c.Name, Unit: c.Unit, HigherIsBetter: c.HigherIsBetter,
		Definition: "custom/" + c.rule()}, n})
}

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
