package metrics

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// Custom is a metric the user finds in an output by a pattern of their own.
type Custom struct {
	gain.Metric
	// Exactly one of the two is set.
	Pattern *regexp.Regexp // matched against every line; the first group, or the whole match, is the number
	Path    string         // from the root of any JSON object, as in a document: "runs/0/latency"
	Pick    string         // "last" or "median" of several matches; "" demands one value
}

var (
	// customRule takes NAME:UNIT:higher[:last|:median]=PATTERN apart.
	customRule = regexp.MustCompile(`(?s)^([^:=]+):([^:=]*):(higher|lower)(?::(last|median))?=(.+)$`)
	pathStep   = regexp.MustCompile(`\.([^.\[\]'"]+)|\[(\d+)\]|\['([^']+)'\]|\["([^"]+)"\]`)
)

// ParseCustom reads NAME:UNIT:higher=PATTERN, or lower where less is better. A pattern that begins
// with "$." is a path into a JSON object ($.performance.total_latency_ms, also
// $.runs[0].latency and $['key.with.dots']), anything else a regular expression
// (RE2) whose first group is the number. Of several matches, NAME:UNIT:higher:last or :median takes one.
func ParseCustom(s string) (c Custom, err error) {
	m := customRule.FindStringSubmatch(s)
	if m == nil {
		return c, fmt.Errorf("metric '%s': want NAME:UNIT:higher=REGEX or NAME:UNIT:lower=$.json.path", s)
	}
	c = Custom{Pick: m[4], Metric: gain.Metric{Name: m[1], Unit: m[2], HigherIsBetter: m[3] == "higher",
		Definition: "custom/" + strings.TrimPrefix(m[4]+" of "+m[5], " of ")}}
	if path := strings.TrimPrefix(m[5], "$"); !strings.HasPrefix(m[5], "$.") && !strings.HasPrefix(m[5], "$[") {
		c.Pattern, err = regexp.Compile(m[5])
	} else if pathStep.ReplaceAllString(path, "") != "" {
		err = fmt.Errorf("want .key, [0] or ['key'] in %q", m[5])
	} else {
		c.Path = pathStep.ReplaceAllString(path, "/$1$2$3$4")[1:]
	}
	return c, err
}

// Wanted is a metric as a user names it: by its name alone, or by a rule that finds it.
type Wanted struct {
	Name, Text string
	Rule       []Custom // nil for a name
}

// ParseWanted reads the name of a metric, or a rule as ParseCustom takes it.
func ParseWanted(s string) (Wanted, error) {
	if !strings.ContainsAny(s, `= ()[]\|*+?^$`) {
		return Wanted{Name: s, Text: s}, nil
	}
	c, err := ParseCustom(s)
	return Wanted{c.Name, s, []Custom{c}}, err
}

// rule is a custom metric and its matches.
type rule struct {
	Custom
	report
}

// customFormat names an output from which only custom metrics were read.
const customFormat = "custom"

// read looks for the pattern in the lines of a document, or follows the path in an object.
func (r *rule) read(d *document) {
	if r.Pattern == nil {
		if v, ok := r.number(d, r.Path, d.printed == ""); ok {
			r.found = append(r.found, Metric{r.Metric, v, d.line})
		}
		return
	}
	for i, text := range strings.Split(d.text, "\n") {
		if m := r.Pattern.FindStringSubmatchIndex(text); m != nil {
			if len(m) > 2 && m[2] >= 0 {
				m = m[2:]
			}
			r.match(text, text[m[0]:m[1]], text[m[1]:], d.line+i)
		}
	}
}

// grouped is a number with commas between thousands: 1,150.5, but not 1,5 or 0,500, whose comma may be a point.
var grouped = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?$`)

// numberGoesOn is text behind a number that belongs to it: "1" of "1,150" or "1'150", "1.15" of "1.15e3", "1.15k" or
// "1.15 k".
var numberGoesOn = regexp.MustCompile(`^(?:\d|[.,'’_]\d|[eE][+-]?\d|[kKMGT]\b| [kKMGT](?:$|[\s,;)]))`)

// spaced is a number with spaces between thousands, before its unit or the end: "1 150.7 tok/s", but not columns such
// as "64 1280".
var spaced = regexp.MustCompile(
	`^[-+]?[1-9]\d{0,2}(?:[ \x{a0}\x{2009}\x{202f}]\d{3})+(?:[.,]\d+)?(?: ?[a-zA-Zµ]|\s*$)`)

// unitBehind is what a line prints behind a number, if anything: "ms", "K tokens/s", "tok/min".
var unitBehind = regexp.MustCompile(`^(?: ?x? ?((?:[kKMGT] )?[a-zA-Zµ]+(?:/[a-zA-Z]+)*))?`)

// match takes the text found in a line; rest is the text behind it. A known unit is turned into the rule's: "1.02 s" in
// ms → 1020. A match that stops within its number, before a prefix of its unit, or before a unit of another kind is an
// error: "1.0x ktok/s" and "69 tok/min" are no tok/s, and "1150 tok/s" is no ktok/s.
func (r *rule) match(text, found, rest string, line int) {
	x, err := strconv.ParseFloat(found, 64)
	if grouped.MatchString(found) {
		x, err = strconv.ParseFloat(strings.ReplaceAll(found, ",", ""), 64)
	}
	metric, by, fits := r.Metric, 1.0, true
	metric.Unit, by, fits = inUnit(unitBehind.FindStringSubmatch(rest)[1], r.Unit)
	if err != nil || !fits || numberGoesOn.MatchString(rest) || spaced.MatchString(found+rest) {
		r.fail(line, input.Error{Expected: fmt.Sprintf("%q to match all of a number, of a unit like %q", r.Name, r.Unit),
			Found: fmt.Sprintf("%q in %.80q", found, strings.TrimSpace(text)),
			Try:   `a group such as ([\d.,eE+-]+), and the unit behind it in the rule`})
	}
	r.found = append(r.found, Metric{metric, router.Number(x * by), line})
}

// inUnit returns the unit of a number that is printed in one unit and wanted in another, by how much to multiply it,
// and whether they are of one kind, as far as it is known: "s", "ms" → "ms", 1000. Either may be empty. Where no unit
// is wanted, it is the vocabulary's.
func inUnit(printed, wanted string) (unit string, by float64, fits bool) {
	from, known := units[strings.ToLower(printed)]
	to, wantedKnown := units[strings.ToLower(wanted)]
	switch {
	case known && wanted == "":
		return from.unit, from.by, true
	case known && wantedKnown:
		return wanted, from.by / to.by, from.unit == to.unit
	}
	_, per, rate := strings.Cut(strings.ToLower(printed), "/")
	_, wantedPer, wantedRate := strings.Cut(strings.ToLower(wanted), "/")
	other := rate && wantedRate && per != wantedPer && (units[per].unit == "" || units[per] != units[wantedPer]) ||
		min(printed, wanted) != "" && (prefixed(printed, wanted) || prefixed(wanted, printed))
	return wanted, 1, !other && !strings.Contains(printed, " ")
}

// prefixed reports a unit that is another one behind a prefix: "ktok/s" of "tok/s" and of "tokens/s".
func prefixed(unit, other string) bool {
	rest, bare := unit[1:], units[strings.ToLower(unit[1:])]
	same := rest == other || bare.by > 0 && bare == units[strings.ToLower(other)]
	return same && strings.Contains("kKMGTmun", unit[:1])
}

// end adds the match to a result. Of several it adds the last or their median, and says how many there were.
func (r *rule) end(out *Result) *input.Error {
	var all []float64
	for _, m := range r.found {
		if first := r.found[0]; r.Pick == "" && !same(first, m) {
			r.differ(r.Name, float64(first.Value), float64(m.Value), first.line, m.line)
		}
		all = append(all, float64(m.Value))
	}
	if len(all) == 0 {
		r.fail(0, input.Error{Expected: "a match of metric " + strconv.Quote(r.Name) + ", " + r.Definition, Found: "none"})
	}
	if r.failed != nil {
		return r.failed
	}
	m := r.found[len(all)-1]
	if r.Pick == "median" {
		m.Value = router.Number(stats.Median(all))
	}
	if r.Pick != "" {
		out.warn(fmt.Sprintf("%s is the %s of %s, whose median is %s", r.Name, r.Pick, quantity.Count(len(all), "match"),
			quantity.Digits3(stats.Median(all))))
	}
	out.Primary, out.Metrics = cmp.Or(out.Primary, m.Name), append(out.Metrics, m)
	return nil
}
