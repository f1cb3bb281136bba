// Package answer says what a result means, in the words that people read: one verdict, one
// sentence, a few numbers, where and why, what to do, and what to keep in mind. Terminal,
// --brief, page, Markdown and JSON show this one value, and nothing else writes a headline.
//
// It measures nothing: every number of an Answer is one of the result it is of, or a sum or
// ratio of some. An answer names the largest effect that the result shows, and what is wrong with the data where
// that decides.
package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Answer is what a result says.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	// Basis is what the verdict rests on: measured, inferred, predicted or claimed, on how much.
	Basis string `json:"basis"`
	// Line is one sentence of at most MaxWords words and MaxRunes characters. Its first clause stands alone as a title.
	Line    string   `json:"line"`
	Numbers []Number `json:"numbers"` // at most five, the one that decides first
	Reasons []string `json:"reasons"` // at most three: where, why, how much of the effect
	Next    []Step   `json:"next"`    // at most two
	Caveats []Caveat `json:"caveats"` // grouped by code, doubts first
}

// MaxWords is the most words of a line, a number with its unit counting as two.
const MaxWords = 20

// MaxRunes is the most characters of a line.
const MaxRunes = 80

// Verdict is one of a closed set; those of campaigns, comparisons and placements are the
// verdicts of packages gain and place.
type Verdict string

// The verdicts on traces and counts, on comparisons, and on caches.
const (
	Even          Verdict = "even"          // no layer is more uneven than the threshold and chance
	Uneven        Verdict = "uneven"        // one is
	LateLaunches  Verdict = "late launches" // ranks wait for the CPU of one more than for experts
	NoAnswer      Verdict = "no answer"     // the data does not tell
	NotComparable Verdict = "not comparable"
	NoVerdict     Verdict = "no verdict" // a prediction, or one launch
	Complete      Verdict = "complete"
	Failed        Verdict = "failed"
)

// Tone is how a verdict is colored: whether something is to be done.
type Tone int

// The tones.
const (
	Undecided Tone = iota // yellow
	Fine                  // green
	Costs                 // red
)

// Tone of a verdict. One that compares builds is a fact like any other: fine or not.
func (v Verdict) Tone() Tone {
	switch v {
	case Even, Complete, "not significant", "faster", "equivalent", "not now":
		return Fine
	case Uneven, LateLaunches, Failed, "imbalance significant", "slower", "invalid", NotComparable, "worth a trial":
		return Costs
	}
	return Undecided
}

// Basis says how a number was found.
type Basis string

// The bases of numbers. Inferred and Predicted are models.
const (
	Measured  Basis = "measured"
	Inferred  Basis = "inferred"
	Predicted Basis = "predicted"
	Claimed   Basis = "claimed"
	Recorded  Basis = "recorded" // by the engine
)

// Unit is the unit of a Number's value, as JSON has it.
type Unit string

// The units.
const (
	Fraction Unit = "fraction" // shown in percent
	NS       Unit = "ns"       // shown in the unit that fits
	MaxMean  Unit = "max/mean"
	Plain    Unit = "count"
)

// Number is one number of an answer. Low and High are its interval at the confidence of the
// result, undefined where there is none.
type Number struct {
	Label string        `json:"label"`
	Value router.Number `json:"value"`
	Unit  Unit          `json:"unit"`
	Low   router.Number `json:"low"`
	High  router.Number `json:"high"`
	Basis Basis         `json:"basis"`
}

// NumberOf is a number without an interval.
func NumberOf(label string, v router.Number, u Unit, b Basis) Number {
	return Number{label, v, u, router.Undefined(), router.Undefined(), b}
}

// String writes the number for people, with its interval.
func (n Number) String() string {
	text := n.Label + " " + n.Shown()
	if in := n.Interval(); in != "" {
		text += " (" + in + ")"
	}
	return text
}

// Interval writes the interval, empty where there is none.
func (n Number) Interval() string {
	if !n.Low.Defined() || !n.High.Defined() {
		return ""
	}
	low, high := n.shown(n.Low), n.shown(n.High)
	if at := strings.LastIndexByte(high, ' '); at >= 0 { // the unit, once
		low = strings.TrimSuffix(low, high[at:])
	}
	return low + " to " + high
}

// Shown is the value alone, with its unit.
func (n Number) Shown() string { return n.shown(n.Value) }

func (n Number) shown(v router.Number) string {
	switch n.Unit {
	case Fraction:
		return quantity.Percent(v)
	case NS:
		return quantity.Duration(v)
	case MaxMean:
		return quantity.Decimals(v, 2)
	}
	if n.Unit != Plain {
		return quantity.Plain(v) + " " + string(n.Unit)
	}
	return quantity.Plain(v)
}

// outOf is the unit of a count of so many.
func outOf(n int) Unit { return Unit(fmt.Sprintf("of %d", n)) }

// Step is something to do next. Command works as typed, but for words in capitals; it is
// empty where there is none.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command"`
}

// Severity is how much a caveat weighs.
type Severity = caveat.Severity

// The severities, in the order in which they are shown.
const (
	Doubt   = caveat.Doubt
	Warn    = caveat.Warn
	Unknown = caveat.Unknown
	Note    = caveat.Note
)

// Caveat is something to keep in mind. Those of one case of a code are one, with the
// subjects they are about and their values together.
type Caveat struct {
	Code     string      `json:"code"`
	Args     router.Args `json:"args,omitempty"`
	Severity Severity    `json:"severity"`
	Subjects []string    `json:"subjects,omitempty"`
	Text     string      `json:"text"`
	More     int         `json:"more,omitempty"` // further ones of a code that brings its own words
}

// String is the caveat in a line.
func (c Caveat) String() string {
	text := c.Text
	if len(c.Subjects) > 0 {
		text = few(c.Subjects) + ": " + text
	}
	if c.More > 0 {
		text += fmt.Sprintf(" (and %d more like this)", c.More)
	}
	return text
}

// Label says in a few words what the caveat is about.
func (c Caveat) Label() string {
	if c.Severity == Unknown {
		return strings.ReplaceAll(c.Code, "_", " ") + ": not checked"
	}
	return caveat.Label(router.Warning{Code: c.Code, Args: c.Args})
}

// few lists the first two names and counts the rest.
func few(names []string) string {
	if more := len(names) - 2; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:2], ", "), more)
	}
	return strings.Join(names, ", ")
}

// caveats groups warnings of one case of a code, the most severe first.
func caveats(warnings []router.Warning, severity func(router.Warning) Severity) []Caveat {
	var keys []string
	groups := map[string][]router.Warning{}
	for _, w := range warnings {
		key := caveat.Group(w)
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], w)
	}
	out := []Caveat{}
	for _, key := range keys {
		out = append(out, group(groups[key], severity))
	}
	weight := []Severity{Doubt, Warn, Unknown, Note}
	slices.SortStableFunc(out, func(a, b Caveat) int {
		return slices.Index(weight, a.Severity) - slices.Index(weight, b.Severity)
	})
	return out
}

// group makes one caveat of several warnings.
func group(warnings []router.Warning, severity func(router.Warning) Severity) Caveat {
	all := warnings[0]
	c := Caveat{Code: all.Code, Severity: severity(all)}
	own := []string{}
	for i, w := range warnings {
		if i > 0 {
			all = caveat.Join(all, w)
		}
		if w.Subject != "" && !slices.Contains(c.Subjects, w.Subject) {
			c.Subjects = append(c.Subjects, w.Subject)
		}
		if w.Text != "" && !slices.Contains(own, w.Text) {
			own = append(own, w.Text)
		}
	}
	c.Args, c.Text, c.More = all.Args, caveat.Text(all), max(0, len(own)-1)
	return c
}

// Status is line 2: the verdict and what it rests on.
func (a Answer) Status() string {
	if a.Basis == "" {
		return string(a.Verdict)
	}
	return string(a.Verdict) + " · " + a.Basis
}

// Title is the first clause of the line, without a stop.
func (a Answer) Title() string {
	clause, _, _ := strings.Cut(a.Line, "; ")
	return strings.TrimSuffix(clause, ".")
}

// CountNotes says how many notes there are, by severity: 3 (1 warning). They are the caveats
// and some more. It is empty for none.
func (a Answer) CountNotes(more int) string {
	if len(a.Caveats)+more == 0 {
		return ""
	}
	n := map[Severity]int{}
	for _, c := range a.Caveats {
		n[c.Severity]++
	}
	var kinds []string
	for _, s := range []Severity{Doubt, Warn, Unknown} {
		switch {
		case n[s] == 0:
		case s == Unknown:
			kinds = append(kinds, quantity.Count(n[s], "unknown check"))
		default:
			kinds = append(kinds, quantity.Count(n[s], string(s)))
		}
	}
	text := fmt.Sprint(len(a.Caveats) + more)
	if len(kinds) > 0 {
		text += " (" + strings.Join(kinds, ", ") + ")"
	}
	return text
}

// speed says how much faster or slower something is: "4.5 % faster", "about 2.0 % slower".
func speed(g router.Number, how string) string {
	word := "faster"
	if g < 0 {
		g, word = -g, "slower"
	}
	return strings.TrimSpace(how + " " + quantity.Percent(g) + " " + word)
}
