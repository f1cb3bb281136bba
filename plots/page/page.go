package page

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router/shown"
	"github.com/moebalance/moebalance/router/table"
)

// Page is a report, ready to be written. It is immutable.
type Page struct {
	title    string
	about    []Fact
	programs []program
}

// Fact is something known about a measurement or the report, such as its date.
type Fact struct{ Name, Value string }

// Program is the results of one program, which share one answer.
type Program struct{ Inputs []Input }

// Input is one result and how its verb prints it.
type Input struct {
	source.Item
	Tables []table.Table
	Notes  []string
	answer answer.Answer
}

// New builds a page of at least one input. Without a title it is named after the first
// program. It is an error when there is nothing to report.
func New(title string, about []Fact, programs ...Program) (Page, error) {
	p := Page{title: title, about: about}
	for i, given := range programs {
		if len(given.Inputs) == 0 {
			return Page{}, errors.New("building a report: want at least one result, have none")
		}
		for _, in := range given.Inputs {
			if in.Results() != 1 {
				return Page{}, fmt.Errorf("building a report: input %q: want exactly one result, have %d", in.Name,
					in.Results())
			}
		}
		built, err := build(given, i)
		if err != nil {
			return Page{}, fmt.Errorf("building a report: %w", err)
		}
		p.programs = append(p.programs, built)
	}
	if title == "" && len(programs) > 0 {
		p.title = p.programs[0].Name
	}
	return p, nil
}

// program is a part of the page. What is in it speaks of its own inputs only.
type program struct {
	Program
	Name     string
	ID       string
	About    []Fact
	Answer   answer.Answer
	Lead     *block // the figure that shows the answer
	Sections []section
	number   int
	arms     []plots.Arm // of the traces, learned before balanced
}

// Key is the number of the answer that decides: the first that its line names, else the first.
// Where launches are late the line names the gain behind them.
func (p program) Key() string {
	shown, _ := key(p.Answer)
	return shown
}

// Nth tells programs behind the first apart in the contents.
func (p program) Nth() string {
	if p.number == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d)", p.number+1)
}

// key is the number that an answer leads with.
func key(a answer.Answer) (shown, of string) {
	if shown, of = number(a, ""); a.Verdict == answer.LateLaunches {
		return shown, of
	}
	at := len(a.Line)
	for _, n := range a.Numbers {
		if i := strings.Index(a.Line, n.Shown()); i >= 0 && i < at {
			shown, of, at = n.Shown(), n.Label, i
		}
	}
	return shown, of
}

// number is the first one of an answer whose label begins so, and its label; empty where there
// is none.
func number(a answer.Answer, label string) (shown, of string) {
	for _, n := range a.Numbers {
		if strings.HasPrefix(n.Label, label) {
			return n.Shown(), n.Label
		}
	}
	return "", ""
}

// leads are the figures that show an answer, by its verdict or the kind of its result, the
// best first.
var leads = map[string][]string{
	string(answer.LateLaunches): {"phase-time"},
	"bench":                     {"dose", "gain"},
	"compare":                   {"phase-time", "compared-phases"},
	"trace":                     {"rank-layer-time", "layer-loss", "phase-time"},
	"counts":                    {"layer-load", "recorded-load"},
	"place":                     {"placement-rebalance", "placement-moves", "placement-layers", "replication"},
}

// takeLead moves the figure that shows the answer out of its section.
func (p *program) takeLead() {
	for _, name := range slices.Concat(leads[string(p.Answer.Verdict)], leads[kindOf(p.lead().Item)]) {
		for i := range p.Sections {
			blocks := &p.Sections[i].Blocks
			at := slices.IndexFunc(*blocks, func(b block) bool {
				return b.Figure != nil &&
					b.Figure.Name == p.unique(name)
			})
			if at >= 0 {
				b := (*blocks)[at]
				b.Leads, b.Beside = true, len(p.Answer.Reasons)+len(p.Answer.Next) > 0
				p.Lead, *blocks = &b, slices.Delete(*blocks, at, at+1)
				return
			}
		}
	}
}

func build(given Program, number int) (program, error) {
	given.Inputs = slices.Clone(given.Inputs)
	for i := range given.Inputs {
		given.Inputs[i].answer = answerOf(given.Inputs[i].Item)
	}
	p := program{Program: given, Name: titleOf(given.Inputs), About: about(given.Inputs), number: number,
		arms: armsOf(given.Inputs)}
	p.ID, p.Answer = p.unique("answer"), p.answer()
	for _, of := range []func() section{p.gain, p.placementSection, p.where, p.imbalance, p.timeLoad, p.data} {
		s := of()
		if s.err != nil {
			return p, s.err
		}
		if s.addTables(&p); s.Answer != "" || len(s.Blocks) > 0 {
			s.Answer = cmp.Or(s.Answer, s.contents())
			if !strings.Contains(s.Answer, s.Key) { // the contents say nothing that their section does not
				s.Answer = strings.Trim(s.KeyOf+": "+s.Key+".\n"+s.Answer, "\n")
			}
			s.ID = p.unique(s.ID)
			for _, b := range s.Blocks {
				if b.Figure != nil {
					b.Figure.Name = p.unique(b.Figure.Name)
				}
			}
			p.Sections = append(p.Sections, s)
		}
	}
	p.takeLead()
	return p, nil
}

// unique is a name that no other program of the page has.
func (p *program) unique(name string) string {
	if p.number == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, p.number+1)
}

// armsOf names the traces: by their arm where the capture says it and no other trace has
// the same, by their input otherwise. The learned router comes first and the balanced
// one second.
func armsOf(inputs []Input) []plots.Arm {
	times := map[string]int{}
	for _, in := range inputs {
		if in.Trace != nil {
			times[in.Trace.Arm]++
		}
	}
	if len(times) == 1 && times[""] == 1 {
		return []plots.Arm{plots.NewArm(plots.OneTrace, inputs[slices.IndexFunc(inputs, func(in Input) bool {
			return in.Trace != nil
		})].Trace)}
	}
	var first, second, rest []plots.Arm
	for _, in := range inputs {
		switch t := in.Trace; {
		case t == nil:
		case t.Arm == "" || times[t.Arm] > 1:
			rest = append(rest, plots.NewArm(shorten(in.Name, 32), t))
		case t.Arm == string(gain.Normal):
			first = append(first, plots.NewArm(gain.Normal.Label(), t))
		case t.Arm == string(gain.Perfect):
			second = append(second, plots.NewArm(gain.Perfect.Label(), t))
		default:
			rest = append(rest, plots.NewArm(shorten(t.Arm, 32), t))
		}
	}
	return slices.Concat(first, second, rest)
}

// of lists the inputs of a kind.
func (p *program) of(kind func(source.Item) bool) (out []Input) {
	for _, in := range p.Inputs {
		if kind(in.Item) {
			out = append(out, in)
		}
	}
	return out
}

func isCampaign(in source.Item) bool { return in.Campaign != nil }
func isTrace(in source.Item) bool    { return in.Trace != nil }
func isCompared(in source.Item) bool { return in.Compared != nil }
func isCounts(in source.Item) bool   { return in.Counts != nil }
func isCache(in source.Item) bool    { return in.Cache != nil }

// Figures are all figures of the page, in its order.
func (p Page) Figures() (out []plots.Figure) {
	for _, part := range p.programs {
		if part.Lead != nil {
			out = append(out, *part.Lead.Figure)
		}
		for _, s := range part.Sections {
			for _, b := range s.Blocks {
				if b.Figure != nil {
					out = append(out, *b.Figure)
				}
			}
		}
	}
	return out
}

//go:embed page.html
var markup string

//go:embed page.css
var style string

var layout = template.Must(template.New("page").Funcs(template.FuncMap{"typeset": typeset, "sentence": sentence,
	"lines": lines, "tone": tone, "class": class, "words": strings.Fields,
	"mask": shown.Masked}).Parse(markup))

// tone is the style of a verdict.
func tone(v answer.Verdict) string { return []string{"warn", "good", "bad"}[v.Tone()] }

// policy lets the page load nothing, run nothing, and have this one style: whatever a
// name in it is taken for, it does nothing.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"
}()

// Write writes the page as one HTML document.
func (p Page) Write(w io.Writer) error {
	var b strings.Builder
	err := layout.Execute(&b, struct {
		Title, Policy string
		Style         template.CSS
		About         []Fact
		Programs      []program
		Words         []word
	}{p.title, policy, template.CSS(style), p.about, p.programs, p.words()})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, shown.Visible(b.String()))
	return err
}
