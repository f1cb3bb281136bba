package answer

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/router"
)

// known holds the values of a result, by the names that the rows of the catalog have for them.
type known struct {
	verdict Verdict // of results that have one
	caveats []Caveat
	values  router.Args
	numbers map[string][]Number
	reasons map[string][]string // in words of their own
	kinds   []string            // what is said of other kinds of steps
	steps   []Step              // before the steps of the row
}

func knowing(caveats []Caveat) *known {
	return &known{caveats: caveats, values: router.Args{"loads": "concurrency=LOADS", "others": "OTHER_COUNTS"},
		numbers: map[string][]Number{}, reasons: map[string][]string{}}
}

// know adds values under names, names and values in turn.
func (k *known) know(args ...any) { maps.Copy(k.values, router.Warn("", "", args...).Args) }

// number adds a number without an interval, unless it is undefined.
func (k *known) number(name, label string, v router.Number, u Unit, b Basis) {
	k.add(name, Number{label, v, u, router.Undefined(), router.Undefined(), b})
}

func (k *known) add(name string, n Number) {
	if n.Value.Defined() {
		k.numbers[name] = append(k.numbers[name], n)
	}
}

// because adds a reason in words, once; empty ones say nothing.
func (k *known) because(name, words string) {
	if text := Sentence(words); words != "" && !slices.Contains(k.reasons[name], text) {
		k.reasons[name] = append(k.reasons[name], text)
	}
}

// say words a row of the catalog; empty where some of its values are not known.
func (k *known) say(key string) string { return caveat.Say(key, k.values) }

// when is a text where something holds, else empty.
func when(holds bool, text string) string {
	if holds {
		return text
	}
	return ""
}

// warned is the first warning of some codes, without a code where there is none.
func warned(warnings []router.Warning, codes ...string) router.Warning {
	for _, w := range warnings {
		if slices.Contains(codes, w.Code) {
			return w
		}
	}
	return router.Warning{}
}

// positive is a number that is known where it is above 0.
func positive[N int | router.Number](n N) router.Number {
	if n > 0 {
		return router.Number(n)
	}
	return router.Undefined()
}

// each offers the names of each group, such as "a|b c", until one of the group is taken.
func each(groups string, take func(name string) bool) {
	for group := range strings.FieldsSeq(groups) {
		for name := range strings.SplitSeq(group, "|") {
			if take(name) {
				break
			}
		}
	}
}

// word is a name as a shell takes it; empty where there is none.
func word(name string) string { return strings.TrimPrefix(launch.Quote([]string{name}), "''") }

// tell is the answer by the first line of a kind of results whose values are all known: at most five numbers,
// three reasons and two steps, for no more are read.
func (k *known) tell(kind string) Answer {
	var row caveat.Line
	a := Answer{Basis: k.say("basis." + kind), Kinds: []string{}, Numbers: []Number{}, Reasons: []string{},
		Next: []Step{}, Caveats: k.caveats}
	for _, row = range caveat.Lines(kind) {
		a.Verdict = cmp.Or(Verdict(row.Verdict), k.verdict)
		k.know("verdict", string(a.Verdict))
		text, whole := caveat.Fill(row.Text, k.values)
		if a.Line = text; whole && (k.verdict == "" || k.verdict == a.Verdict) {
			break
		}
	}
	if !strings.HasPrefix(row.Text, "{other}") { // a name, which stays as it is
		a.Line = Sentence(a.Line)
	}
	for _, text := range k.kinds {
		if text != "" && !strings.Contains(a.Line, text[1:]) { // else it leads
			a.Kinds = append(a.Kinds, Sentence(text))
		}
	}
	for name := range strings.FieldsSeq(row.Numbers) {
		a.Numbers = append(a.Numbers, k.numbers[name]...)
	}
	each(row.Reasons, func(name string) bool {
		k.because(name, k.say("why."+name))
		a.Reasons = append(a.Reasons, k.reasons[name]...)
		return len(k.reasons[name]) > 0
	})
	a.Next = slices.Concat(a.Next, k.steps, k.next(row.Next))
	a.Numbers = a.Numbers[:min(5, len(a.Numbers))]
	a.Reasons, a.Next = a.Reasons[:min(3, len(a.Reasons))], a.Next[:min(2, len(a.Next))]
	return a
}

// next are the steps of each group, the first of it whose values are all known.
func (k *known) next(groups string) (steps []Step) {
	each(groups, func(name string) bool {
		text, command, whole := caveat.Step(name, k.values)
		if whole {
			steps = append(steps, Step{text, command})
		}
		return whole
	})
	return steps
}

// Caveat is something to keep in mind. Warnings of one case of a code are one caveat, with the words and
// values of the first.
type Caveat struct {
	Code     string          `json:"code"`
	Args     router.Args     `json:"args,omitempty"`
	Severity caveat.Severity `json:"severity"`
	Subjects []string        `json:"subjects,omitempty"`
	Text     string          `json:"text"`
	More     int             `json:"more,omitempty"` // other warnings of this case
}

// String is the caveat in a line.
func (c Caveat) String() string {
	of := when(len(c.Subjects) > 0, caveat.Some(c.Subjects, ", ", 2)+": ")
	return of + c.Text + when(c.More > 0, fmt.Sprintf(" (and %d more like this)", c.More))
}

// caveats groups warnings of one case of a code, the most severe first. Codes or keys in weights weigh as said
// there, others as the catalog says. Files that warnings are about are named by the last part of their paths.
func caveats(warnings []router.Warning, weights map[string]caveat.Severity) []Caveat {
	at, out, texts := map[string]int{}, []Caveat{}, map[string]bool{}
	for _, w := range warnings {
		group, text := caveat.Group(w), caveat.Text(w)
		i, seen := at[group]
		if !seen {
			i, at[group] = len(out), len(out)
			out = append(out, Caveat{Code: w.Code, Args: w.Args, Text: text,
				Severity: cmp.Or(weights[w.Key()], weights[w.Code], caveat.SeverityOf(w))})
		} else if !texts[group+text] {
			out[i].More++
		}
		texts[group+text] = true
		if name := filepath.Base(w.Subject); w.Subject != "" && !slices.Contains(out[i].Subjects, name) {
			out[i].Subjects = append(out[i].Subjects, name)
		}
	}
	return DoubtsFirst(out)
}

// DoubtsFirst sorts caveats by severity, and keeps the order of equal ones.
func DoubtsFirst(caveats []Caveat) []Caveat {
	slices.SortStableFunc(caveats, func(a, b Caveat) int {
		return slices.Index(caveat.Severities, a.Severity) - slices.Index(caveat.Severities, b.Severity)
	})
	return caveats
}
