// Package answer says what a result means, in the words that people read: one verdict, one
// sentence, a few numbers, where and why, what to do, and what to keep in mind. Terminal,
// --brief, page, Markdown and JSON show this one value, and nothing else writes a headline.
//
// It measures nothing: every number of an Answer is a number of the result, or a sum or ratio
// of such numbers. For each kind of result a file gathers what is known, by name. The first line
// whose values are all known is told; its row in the catalog of package caveat says which numbers,
// reasons and steps follow, and one function fills them in (known.tell). What is not known is left out.
package answer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Answer is the meaning of a result, for people.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	// Basis is the evidence of the verdict: measured, inferred, predicted or claimed, on how much.
	Basis   string   `json:"basis"`
	Line    string   `json:"line"`    // one sentence, with the steps that it is about
	Kinds   []string `json:"kinds"`   // a sentence for each other kind of steps that has enough time: decode
	Numbers []Number `json:"numbers"` // at most five, the one that decides first
	Reasons []string `json:"reasons"` // at most three: where, why, how much of the effect
	Next    []Step   `json:"next"`    // at most two
	Caveats []Caveat `json:"caveats"` // grouped by code, doubts first
}

// Verdict is one of a closed set. Campaigns and placements have the verdicts of packages gain
// and place.
type Verdict string

// The verdicts that lead on in tables and pages. The catalog's lines have the others.
const (
	Uneven       Verdict = "uneven"        // a layer is more uneven than the threshold and chance
	LateLaunches Verdict = "late launches" // ranks wait for the CPU of one more than for experts
)

// Note is the least severity of a caveat.
const Note = caveat.Note

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
)

// Number is one number of an answer. Low and High are its interval at the confidence of the
// result, or what late launches leave open; undefined where there is none.
type Number struct {
	Label string        `json:"label"`
	Value router.Number `json:"value"`
	Unit  Unit          `json:"unit"`
	Low   router.Number `json:"low"`
	High  router.Number `json:"high"`
	Basis Basis         `json:"basis"`
}

// String writes the number for people, with its interval: "gain 12.7 % (12.5 to 13.0 %)".
func (n Number) String() string {
	in := n.Interval()
	return n.Label + " " + n.Shown() + when(in != "", " ("+in+")")
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

func (n Number) shown(v router.Number) string { return writers[n.Unit](v) }

var writers = map[Unit]func(router.Number) string{Fraction: quantity.Percent[router.Number],
	NS: quantity.Duration[router.Number], MaxMean: func(v router.Number) string { return quantity.Decimals(v, 2) }}

// Step is something to do next. Command works as typed, but for words in capitals; it is
// empty where there is none.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command"`
}

// CountNotes says how many notes there are, and how many of them warn: 3 (1 warning). They are the caveats
// and some more. It is empty for none.
func (a Answer) CountNotes(more int) string {
	warnings := len(slices.DeleteFunc(slices.Clone(a.Caveats), func(c Caveat) bool {
		return c.Severity == caveat.Unknown || c.Severity == caveat.Note
	}))
	more += len(a.Caveats)
	return when(more > 0, fmt.Sprint(more)+when(warnings > 0, " ("+quantity.Count(warnings, "warning")+")"))
}

// Sentence begins with a capital, unless with a name, and ends with a stop: "l2/a fails" → "l2/a fails.".
func Sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if first, size := utf8.DecodeRuneInString(text); size > 0 && !strings.ContainsAny(word, "0123456789_/.") {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	return strings.TrimSuffix(text, ".") + "."
}
