// Package answer says what a result means, in the words that people read: one verdict, one
// sentence, a few numbers, where and why, what to do, and what to keep in mind. Terminal,
// --brief, page, Markdown and JSON show this one value, and nothing else writes a headline.
//
// It measures nothing: every number of an Answer is a number of the result, or a sum or ratio
// of such numbers. An answer leads with the largest effect that the result shows, or with what
// is wrong with the data where that decides. Its words are in package caveat.
package answer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Answer is the meaning of a result, for people.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	// Basis is the evidence of the verdict: measured, inferred, predicted or claimed, on how much.
	Basis string `json:"basis"`
	// Line is one sentence. Its first clause stands alone as a title.
	Line    string   `json:"line"`
	Numbers []Number `json:"numbers"` // at most five, the one that decides first
	Reasons []string `json:"reasons"` // at most three: where, why, how much of the effect
	Next    []Step   `json:"next"`    // at most two
	Caveats []Caveat `json:"caveats"` // grouped by code, doubts first
}

// Verdict is one of a closed set. Campaigns and placements have the verdicts of packages gain
// and place.
type Verdict string

// The verdicts on traces and counts, on comparisons, and on caches.
const (
	Even         Verdict = "even"          // no layer is more uneven than the threshold and chance
	Uneven       Verdict = "uneven"        // one is
	LateLaunches Verdict = "late launches" // ranks wait for the CPU of one more than for experts
	SlowerGPU    Verdict = "slower GPU"    // one rank takes longer whatever it runs
	NoAnswer     Verdict = "no answer"     // the data does not tell
	// AttentionUneven is ranks with unequal tokens of their own, which cost more than uneven experts.
	AttentionUneven Verdict = "attention uneven"
	// LoadWithoutTime is uneven counts whose experts take even time.
	LoadWithoutTime Verdict = "load without time"
	NotComparable   Verdict = "not comparable"
	NoVerdict       Verdict = "no verdict" // a prediction, or one launch
	Complete        Verdict = "complete"
	Failed          Verdict = "failed"
)

// Tone is how a verdict is colored: whether something is to be done.
type Tone int

// The tones.
const (
	Undecided Tone = iota // yellow
	Fine                  // green
	Costs                 // red
)

// Tone of a verdict, by what it means for the user: a placement that is worth a trial is good news.
func (v Verdict) Tone() Tone {
	switch v {
	case Even, Complete, Verdict(gain.NotSignificant), Verdict(gain.Faster), Verdict(gain.Equal),
		Verdict(place.NotNow), Verdict(place.Trial):
		return Fine
	case Uneven, LateLaunches, SlowerGPU, AttentionUneven, Failed, Verdict(gain.Significant), Verdict(gain.Slower), Verdict(gain.Invalid),
		NotComparable:
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
	return strings.TrimSuffix(quantity.Plain(v)+" "+string(n.Unit), " "+string(Plain))
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

// Caveat is something to keep in mind. Warnings of one case of a code are one caveat, with the words and
// values of the first.
type Caveat struct {
	Code     string      `json:"code"`
	Args     router.Args `json:"args,omitempty"`
	Severity Severity    `json:"severity"`
	Subjects []string    `json:"subjects,omitempty"`
	Text     string      `json:"text"`
	More     int         `json:"more,omitempty"` // other warnings of this case
}

// String is the caveat in a line.
func (c Caveat) String() string {
	text := c.Text
	if len(c.Subjects) > 0 {
		text = firstOf(c.Subjects) + ": " + text
	}
	if c.More > 0 {
		text += fmt.Sprintf(" (and %d more like this)", c.More)
	}
	return text
}

// firstOf lists the first two names and counts the rest.
func firstOf(names []string) string {
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

// group makes one caveat of several warnings: the words of the first, and how many others there are.
func group(warnings []router.Warning, severity func(router.Warning) Severity) Caveat {
	first := warnings[0]
	c := Caveat{Code: first.Code, Args: first.Args, Severity: severity(first), Text: caveat.Text(first)}
	texts := map[string]bool{}
	for _, w := range warnings {
		if texts[caveat.Text(w)] = true; w.Subject != "" && !slices.Contains(c.Subjects, w.Subject) {
			c.Subjects = append(c.Subjects, w.Subject)
		}
	}
	c.More = len(texts) - 1
	return c
}

// Title is the first clause of the line, without a stop.
func (a Answer) Title() string {
	clause, _, _ := strings.Cut(a.Line, "; ")
	return strings.TrimSuffix(clause, ".")
}

// answering is an answer without content. JSON shows empty lists as such.
func answering(caveats []Caveat) Answer {
	return Answer{Numbers: []Number{}, Reasons: []string{}, Next: []Step{}, Caveats: caveats}
}

// say words the line of an answer.
func (a *Answer) say(v Verdict, key string, args ...any) {
	a.Verdict, a.Line = v, caveat.Say(key, args...)
}

// because adds a reason.
func (a *Answer) because(key string, args ...any) { a.reason(caveat.Say(key, args...)) }

// reason adds a reason in words; empty ones say nothing.
func (a *Answer) reason(words string) {
	if words != "" {
		a.Reasons = append(a.Reasons, Sentence(words))
	}
}

// next adds a step.
func (a *Answer) next(key string, args ...any) {
	text, command := caveat.Step(key, args...)
	a.Next = append(a.Next, Step{text, command})
}

// loadToFill is where the command of a benchmark takes the load of a point, which bench fills in.
const loadToFill = "{concurrency}"

// number adds a number without an interval, unless it is undefined.
func (a *Answer) number(label string, v router.Number, u Unit, b Basis) {
	if v.Defined() {
		a.Numbers = append(a.Numbers, NumberOf(label, v, u, b))
	}
}

// few keeps the first numbers, reasons and steps: no more are read.
func (a Answer) few() Answer {
	a.Numbers = a.Numbers[:min(5, len(a.Numbers))]
	a.Reasons, a.Next = a.Reasons[:min(3, len(a.Reasons))], a.Next[:min(2, len(a.Next))]
	return a
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

// be is the verb behind so many things: is, are.
func be(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Sentence begins with a capital, unless with a name, and ends with a stop: "l2/a fails" → "l2/a fails.".
func Sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if text == "" || strings.ContainsAny(word, "0123456789_/.") {
		return strings.TrimSuffix(text, ".") + "."
	}
	return strings.TrimSuffix(capital(text), ".") + "."
}

func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
