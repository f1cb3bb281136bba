package metrics

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
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
	Pick    string         // "last" or "median" of several matches; "" demands one value
}

// ParseCustom reads NAME[:UNIT[:higher|lower]]=PATTERN. A pattern that begins
// with "$." is a path into a JSON object ($.performance.total_latency_ms, also
// $.runs[0].latency and $['key.with.dots']), anything else a regular expression
// (RE2) whose first group is the number. Without a direction, the unit or the name must
// tell a time, of which lower is better, from a rate: NAME:ms, latency, throughput. Of several
// matches, NAME:UNIT:higher:last or :median takes one.
func ParseCustom(s string) (Custom, error) {
	name, pattern, ok := strings.Cut(s, "=")
	if !ok || name == "" || pattern == "" {
		return Custom{}, fmt.Errorf("metric '%s': want NAME:UNIT:higher=REGEX or NAME:UNIT:lower=$.json.path", s)
	}
	parts := strings.Split(name, ":")
	c := Custom{Name: parts[0]}
	if last := parts[len(parts)-1]; len(parts) > 1 && (last == "last" || last == "median") {
		c.Pick, parts = last, parts[:len(parts)-1]
	}
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

// read looks for the pattern in the lines of a document, or follows the path.
func (c Custom) read(doc *document, rep *report, picked *[]float64) {
	if c.Path != nil {
		if doc.text == "" {
			c.follow(doc, rep, picked)
		}
		return
	}
	line := doc.line
	for text := range strings.SplitSeq(doc.raw, "\n") {
		c.match(text, line, rep, picked)
		line++
	}
}

// match looks for the pattern in a line.
func (c Custom) match(text string, line int, rep *report, picked *[]float64) {
	m := c.Pattern.FindStringSubmatchIndex(text)
	if m == nil {
		return
	}
	from, to := m[0], m[1]
	if len(m) > 2 && m[2] >= 0 {
		from, to = m[2], m[3]
	}
	found := text[from:to]
	v, err := strconv.ParseFloat(strings.ReplaceAll(found, ",", ""), 64)
	if err != nil {
		rep.fail(line, input.Error{Expected: "a number where the rule of metric " + strconv.Quote(c.Name) +
			" matches", Found: strconv.Quote(found)})
		return
	}
	if c.goesOn(text[to:]) {
		rep.fail(line, input.Error{Expected: "the whole number in the group of metric " + strconv.Quote(c.Name),
			Found: fmt.Sprintf("%q, which goes on in %.80q", found, strings.TrimSpace(text)),
			Try:   `a group such as ([\d.,eE+-]+), and the unit behind it in the rule`})
		return
	}
	c.put(v, line, rep, picked)
}

// numberGoesOn is text behind a number that belongs to it: "1" of "1,150", "1.15" of "1.15e3" or of "1.15k".
var numberGoesOn = regexp.MustCompile(`^(?:\d|[.,]\d|[eE][+-]?\d|[kKMGT]\b)`)

// goesOn reports whether a match stops within its number, or before a prefix of its unit: "1.0x ktok/s"
// is not 1 tok/s.
func (c Custom) goesOn(rest string) bool {
	if numberGoesOn.MatchString(rest) {
		return true
	}
	unit := strings.TrimLeft(rest, " x")
	return c.Unit != "" && len(unit) > 1 && strings.IndexByte("kKMGTmun", unit[0]) >= 0 &&
		strings.HasPrefix(unit[1:], c.Unit)
}

// follow takes the number at the path.
func (c Custom) follow(doc *document, rep *report, picked *[]float64) {
	path := strings.Join(c.Path, "/")
	if _, there := doc.values[path]; !there {
		if _, there = doc.get(path); !there {
			return
		}
	}
	v, _ := rep.value(doc, path)
	if _, ok := number(v); !ok {
		rep.fail(doc.line, input.Error{Expected: "a number at " + c.rule() + " for metric " + strconv.Quote(c.Name),
			Found: kind(v)})
		return
	}
	c.put(v.(float64), doc.line, rep, picked)
}

// put takes a match: at once, or to choose from when all are known.
func (c Custom) put(v float64, line int, rep *report, picked *[]float64) {
	if c.Pick == "" {
		rep.metric(line, c.metric(v))
	} else if len(*picked) < maxSteps || c.Pick == "last" {
		if *picked = append(*picked, v); len(*picked) > maxSteps {
			*picked = (*picked)[1:]
		}
	}
}

func (c Custom) metric(v float64) Metric {
	n, _ := number(v)
	rule := c.rule()
	if c.Pick != "" {
		rule = c.Pick + " of " + rule
	}
	return Metric{gain.Metric{Name: c.Name, Unit: c.Unit, HigherIsBetter: c.HigherIsBetter,
		Definition: "custom/" + rule}, n}
}

// choose takes the last or the median match, and says of how many.
func (c Custom) choose(picked []float64, rep *report) {
	if c.Pick == "" || len(picked) == 0 {
		return
	}
	numbers := make([]router.Number, len(picked))
	for i, v := range picked {
		numbers[i], _ = number(v)
	}
	_, median, _ := summary(numbers)
	v := picked[len(picked)-1]
	if c.Pick == "median" {
		v = float64(median)
	}
	rep.metric(0, c.metric(v))
	rep.warn(fmt.Sprintf("%s is the %s of %s, whose median is %s", c.Name, c.Pick,
		quantity.Count(len(picked), "match"), quantity.Digits3(median)))
}
