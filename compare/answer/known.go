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
	verdict Verdict // where the row has none of its own
	basis   string
	caveats []Caveat
	values  router.Args
	numbers map[string][]Number
	reasons map[string][]string // in words of their own
	steps   []Step              // before the steps of the row
}

func knowing(caveats []Caveat) *known {
	return &known{caveats: caveats, values: router.Args{}, numbers: map[string][]Number{}, reasons: map[string][]string{}}
}

// know adds values under names, names and values in turn.
func (k *known) know(args ...any) { maps.Copy(k.values, router.Warn("", "", args...).Args) }

// number adds a number without an interval, unless it is undefined.
func (k *known) number(name, label string, v router.Number, u Unit, b Basis) {
	k.add(name, NumberOf(label, v, u, b))
}

func (k *known) add(name string, n Number) {
	if n.Value.Defined() {
		k.numbers[name] = append(k.numbers[name], n)
	}
}

// because adds a reason in words; empty ones say nothing.
func (k *known) because(name, words string) {
	if words != "" {
		k.reasons[name] = append(k.reasons[name], Sentence(words))
	}
}

// say words the first of some rows whose values are all known: "gain|gain.unknown"; empty where there is none.
func (k *known) say(keys string) string {
	for key := range strings.SplitSeq(keys, "|") {
		if text, whole := caveat.Say(key, k.values); whole {
			return text
		}
	}
	return ""
}

// word is a name as a shell takes it; empty where there is none.
func word(name string) string {
	if name == "" {
		return ""
	}
	return launch.Quote([]string{name})
}

// tell is the answer by a line of the catalog: at most five numbers, three reasons and two steps, for no more
// are read. Before a step that needs the hook's cache comes the one that writes it.
func (k *known) tell(key string) Answer {
	row := caveat.Lines[key]
	line, _ := caveat.Fill(row.Text, k.values)
	if !strings.HasPrefix(row.Text, "{other}") { // a name, which stays as it is
		line = capital(line)
	}
	a := Answer{Verdict: cmp.Or(Verdict(row.Verdict), k.verdict), Basis: k.basis, Line: line, Numbers: []Number{},
		Reasons: []string{}, Next: slices.Concat([]Step{}, k.steps), Caveats: k.caveats}
	for name := range strings.FieldsSeq(row.Numbers) {
		a.Numbers = append(a.Numbers, k.numbers[name]...)
	}
	for group := range strings.FieldsSeq(row.Reasons) {
		for name := range strings.SplitSeq(group, "|") {
			k.because(name, k.say("why."+name))
			if len(k.reasons[name]) > 0 {
				a.Reasons = append(a.Reasons, k.reasons[name]...)
				break
			}
		}
	}
	hooked := -1 // the step that measures with the hook, which needs a cache
	for group := range strings.FieldsSeq(row.Next) {
		for name := range strings.SplitSeq(group, "|") {
			if text, command, whole := caveat.Step(name, k.values); whole {
				if strings.HasSuffix(name, ".hook") && k.values["treatment"] != "hook" {
					hooked = len(a.Next)
				}
				a.Next = append(a.Next, Step{text, command})
				break
			}
		}
	}
	a.Numbers = a.Numbers[:min(5, len(a.Numbers))]
	a.Reasons, a.Next = a.Reasons[:min(3, len(a.Reasons))], a.Next[:min(2, len(a.Next))]
	if hooked >= 0 && hooked < len(a.Next) {
		text, command, _ := caveat.Step("cache", k.values)
		a.Next = slices.Insert(a.Next, hooked, Step{text, command})
	}
	return a
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
	text := c.Text
	if more := len(c.Subjects) - 2; more > 0 {
		text = fmt.Sprintf("%s and %d more: %s", strings.Join(c.Subjects[:2], ", "), more, text)
	} else if len(c.Subjects) > 0 {
		text = strings.Join(c.Subjects, ", ") + ": " + text
	}
	if c.More > 0 {
		text += fmt.Sprintf(" (and %d more like this)", c.More)
	}
	return text
}

// caveats groups warnings of one case of a code, the most severe first. Codes or keys in weights weigh as said
// there, others as the catalog says.
func caveats(warnings []router.Warning, weights map[string]caveat.Severity) []Caveat {
	at, out, texts := map[string]int{}, []Caveat{}, map[string]bool{}
	for _, w := range warnings {
		group, text := caveat.Group(w), caveat.Text(w)
		i, seen := at[group]
		switch said := group + text; {
		case !seen:
			i, at[group] = len(out), len(out)
			out = append(out, Caveat{Code: w.Code, Args: w.Args, Text: text,
				Severity: cmp.Or(weights[w.Key()], weights[w.Code], caveat.SeverityOf(w))})
			texts[said] = true
		case !texts[said]:
			out[i].More++
			texts[said] = true
		}
		if w.Subject != "" && !slices.Contains(out[i].Subjects, w.Subject) {
			out[i].Subjects = append(out[i].Subjects, w.Subject)
		}
	}
	return DoubtsFirst(out)
}

// DoubtsFirst sorts caveats by severity, and keeps the order of equal ones.
func DoubtsFirst(caveats []Caveat) []Caveat {
	order := []caveat.Severity{caveat.Doubt, caveat.Warn, caveat.Unknown, caveat.Note}
	slices.SortStableFunc(caveats, func(a, b Caveat) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return caveats
}

// byFile names the files that warnings are about by the last part of their paths.
func byFile(warnings []router.Warning) []router.Warning {
	out := slices.Clone(warnings)
	for i := range out {
		if out[i].Subject != "" {
			out[i].Subject = filepath.Base(out[i].Subject)
		}
	}
	return out
}
