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
	// Pick chooses among several matches: "last" or "median"; empty where all must be equal.
	Pick string
}

// ParseCustom reads NAME[:UNIT[:higher|lower[:last|median]]]=PATTERN. A pattern that begins
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
	if c.Name == "" || len(parts) > 4 {
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
	parts = append(parts, "", "", "")
	if c.Pick = parts[3]; c.Pick != "" && c.Pick != "last" && c.Pick != "median" {
		return Custom{}, fmt.Errorf("metric '%s': want last or median of several matches, not %q", s, c.Pick)
	}
	direction := parts[2]
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
	at := c.Pattern.FindStringSubmatchIndex(rec.raw)
	if at == nil {
		return
	}
	if len(at) > 2 {
		at = at[2:] // the first group instead of the whole match
	}
	found, rest := "", ""
	if at[0] >= 0 {
		found, rest = rec.raw[at[0]:at[1]], rec.raw[at[1]:]
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(found, ",", ""), 64)
	switch {
	case err != nil:
		rep.fail(rec.line, input.Error{Expected: "a number where the rule of metric " + strconv.Quote(c.Name) +
			" matches", Found: strconv.Quote(found)})
	case c.goesOn(rest):
		rep.fail(rec.line, input.Error{Expected: "the whole number in the group of metric " + strconv.Quote(c.Name),
			Found: fmt.Sprintf("%q, which goes on in %.80q", found, strings.TrimSpace(rec.raw)),
			Try:   `a group such as ([\d.,eE+-]+), and the unit behind it in the rule`})
	default:
		c.found(v, rec, rep)
	}
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
	return c.Unit != "" && len(unit) > 1 && strings.IndexByte("kKMGTmun", unit[0]) >= 0 && strings.HasPrefix(unit[1:], c.Unit)
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
	x, ok := v.(float64)
	if !ok {
		rep.fail(rec.line, input.Error{Expected: "a number at " + c.rule() + " for metric " + strconv.Quote(c.Name),
			Found: kind(v)})
		return
	}
	c.found(x, rec, rep)
}

// found records a match, or keeps it for pick to choose.
func (c Custom) found(v float64, rec record, rep *report) {
	n, _ := number(v)
	if c.Pick == "" {
		rep.metric(rec.line, Metric{gain.Metric{Name: c.Name, Unit: c.Unit, HigherIsBetter: c.HigherIsBetter,
			Definition: "custom/" + c.rule()}, n})
		return
	}
	if rep.matches == nil {
		rep.matches = map[string][]router.Number{}
	}
	if all := rep.matches[c.Name]; len(all) < maxSteps {
		rep.matches[c.Name] = append(all, n)
	} else {
		all[len(all)-1] = n // later ones than the limit change the last, not the median
	}
}

// pick makes a metric of the last or the median of the matches, and says of how many.
func (c Custom) pick(rep *report) {
	matches := rep.matches[c.Name]
	if len(matches) == 0 {
		return
	}
	v := matches[len(matches)-1]
	if c.Pick == "median" {
		_, v, _ = summary(matches)
	}
	rep.metric(0, Metric{gain.Metric{Name: c.Name, Unit: c.Unit, HigherIsBetter: c.HigherIsBetter,
		Definition: "custom/" + c.rule() + ", " + c.Pick}, v})
	rep.warn(fmt.Sprintf("%s is the %s of %s", c.Name, c.Pick, quantity.Count(len(matches), "match")))
}
