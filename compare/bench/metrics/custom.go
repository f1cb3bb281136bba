package metrics

import (
	"cmp"
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

// customRule takes NAME[:UNIT[:higher|lower]][:last|:median]=PATTERN apart.
var customRule = regexp.MustCompile(`(?s)^([^:=]+)(?::([^:=]*?)(?::([^:=]*?))??)??(?::(last|median))?=(.+)$`)

// ParseCustom reads NAME[:UNIT[:higher|lower]]=PATTERN. A pattern that begins
// with "$." is a path into a JSON object ($.performance.total_latency_ms, also
// $.runs[0].latency and $['key.with.dots']), anything else a regular expression
// (RE2) whose first group is the number. Without a direction, the unit or the name must
// tell a time, of which lower is better, from a rate: NAME:ms, latency, throughput. Of several
// matches, NAME:UNIT:higher:last or :median takes one.
func ParseCustom(s string) (c Custom, err error) {
	m := customRule.FindStringSubmatch(s)
	if m == nil {
		return c, fmt.Errorf("metric '%s': want NAME:UNIT:higher=REGEX or NAME:UNIT:lower=$.json.path", s)
	}
	c = Custom{Name: m[1], Unit: m[2], Pick: m[4]}
	pattern := m[5]
	if strings.HasPrefix(pattern, "$.") || strings.HasPrefix(pattern, "$[") {
		c.Path, err = parsePath(pattern[1:])
	} else {
		c.Pattern, err = regexp.Compile(pattern)
	}
	if err != nil {
		return c, fmt.Errorf("metric %q: %w", c.Name, err)
	}
	direction := cmp.Or(m[3], impliedDirection(c.Name, c.Unit))
	if c.HigherIsBetter = direction == "higher"; direction != "higher" && direction != "lower" {
		return c, fmt.Errorf("metric '%s': want a direction: '%s:%s:higher=%s' or '%[2]s:%[3]s:lower=%[4]s'", s,
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

// impliedDirection is lower for a time and higher for a rate, by its unit, else by its name; ""
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
			err = fmt.Errorf(
				"metric '%s': want the name of a reported metric, NAME:UNIT:higher=REGEX or NAME:UNIT:lower=$.json.path", s)
		}
		return s, nil, err
	}
	c, err := ParseCustom(s)
	return c.Name, []Custom{c}, err
}

var pathStep = regexp.MustCompile(`^(?:\.([^.\[\]'"]+)|\[(\d+)\]|\['([^']+)'\]|\["([^"]+)"\])`)

func parsePath(s string) (path []string, err error) {
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

// text is the pattern or path as text.
func (c Custom) text() string {
	if c.Pattern != nil {
		return c.Pattern.String()
	}
	return "$." + strings.Join(c.Path, ".")
}

// rule is a custom metric and what it has found.
type rule struct {
	Custom
	matches []router.Number // to choose from; the last maxSteps of them
}

// read looks for the pattern in the lines of a document, or follows the path.
func (c *rule) read(doc *document, rep *report) {
	if path := strings.Join(c.Path, "/"); c.Path != nil {
		_, there := doc.values[path]
		if _, item := doc.get(path); doc.text != "" || !there && !item {
			return
		}
		v, _ := rep.value(doc, path)
		if n, ok := number(v); ok {
			c.put(n, doc.line, rep)
		} else {
			rep.fail(doc.line, input.Error{Expected: fmt.Sprintf("a number at %s for metric %q", c.text(), c.Name), Found: kind(v)})
		}
		return
	}
	line := doc.line
	for text := range strings.SplitSeq(doc.raw, "\n") {
		if m := c.Pattern.FindStringSubmatchIndex(text); m != nil {
			if len(m) > 2 && m[2] >= 0 {
				m = m[2:]
			}
			c.match(text, text[m[0]:m[1]], text[m[1]:], line, rep)
		}
		line++
	}
}

// numberGoesOn is text behind a number that belongs to it: "1" of "1,150", "1.15" of "1.15e3" or of "1.15k".
var numberGoesOn = regexp.MustCompile(`^(?:\d|[.,]\d|[eE][+-]?\d|[kKMGT]\b)`)

// match takes what was found in a line, and rest behind it. A match that stops within its number, or before a prefix
// of its unit, is an error: "1.0x ktok/s" is not 1 tok/s.
func (c *rule) match(text, found, rest string, line int, rep *report) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(found, ",", ""), 64)
	unit := strings.TrimLeft(rest, " x")
	prefixed := c.Unit != "" && len(unit) > 1 && strings.IndexByte("kKMGTmun", unit[0]) >= 0 &&
		strings.HasPrefix(unit[1:], c.Unit)
	switch {
	case err != nil:
		rep.fail(line, input.Error{Expected: fmt.Sprintf("a number where the rule of metric %q matches", c.Name),
			Found: strconv.Quote(found)})
	case prefixed || numberGoesOn.MatchString(rest):
		rep.fail(line, input.Error{Expected: fmt.Sprintf("the whole number in the group of metric %q", c.Name),
			Found: fmt.Sprintf("%q, which goes on in %.80q", found, strings.TrimSpace(text)),
			Try:   `a group such as ([\d.,eE+-]+), and the unit behind it in the rule`})
	default:
		n, _ := number(v)
		c.put(n, line, rep)
	}
}

// put takes a match: at once, or to choose from when all are known.
func (c *rule) put(v router.Number, line int, rep *report) {
	if c.Pick == "" {
		rep.put(line, c.metric(v))
	} else if c.matches = append(c.matches, v); len(c.matches) > maxSteps {
		c.matches = c.matches[1:]
	}
}

func (c *rule) metric(v router.Number) Metric {
	text := c.text()
	if c.Pick != "" {
		text = c.Pick + " of " + text
	}
	return Metric{gain.Metric{Name: c.Name, Unit: c.Unit, HigherIsBetter: c.HigherIsBetter, Definition: "custom/" + text}, v}
}

// choose takes the last or the median match, and says of how many.
func (c *rule) choose(rep *report) {
	if len(c.matches) == 0 {
		return
	}
	_, v, _ := summary(c.matches)
	rep.warn(fmt.Sprintf("%s is the %s of %s, whose median is %s", c.Name, c.Pick,
		quantity.Count(len(c.matches), "match"), quantity.Digits3(v)))
	if c.Pick == "last" {
		v = c.matches[len(c.matches)-1]
	}
	rep.put(0, c.metric(v))
}
