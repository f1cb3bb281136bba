package page

import (
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
	"github.com/moebalance/moebalance/router/quantity"
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
	names := map[string]int{}
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
		built, err := build(given, i, names)
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

// program is a part of the page. It speaks of its own inputs only.
type program struct {
	Program
	Name     string
	ID       string
	About    []Fact
	Of       string // the input that the answer and its figure are of, where there are several
	Answer   answer.Answer
	Lead     *figure // shows the answer
	Sections []section
	number   int
}

// section is the results of one kind: the question that they answer, the answers, and what
// supports them.
type section struct {
	ID, Title, Short string
	Lines            []string // the answers
	Key              string   // the number beside Short in the contents
	Figures          []figure
	Tables           []table.Table
	Notes            []note
	kind             string
}

// note is what to keep in mind of one input.
type note struct {
	Of    string
	Texts []string
}

// Key is the number that decides.
func (p program) Key() string { return key(p.Answer) }

// key is the number that an answer leads with: the first that its line names, else the first.
func key(a answer.Answer) string {
	shown, at := "", len(a.Line)
	for i, n := range a.Numbers {
		if found := strings.Index(a.Line, n.Shown()); i == 0 || found >= 0 && found < at {
			if shown = n.Shown(); found >= 0 {
				at = found
			}
		}
	}
	return shown
}

// nth tells names of programs behind the first apart.
func (p program) nth(name, format string) string {
	if p.number == 0 {
		return name
	}
	return fmt.Sprintf(format, name, p.number+1)
}

// Nth is a name in the contents: Gain, or in the second program Gain (2).
func (p program) Nth(name string) string { return p.nth(name, "%s (%d)") }

// build makes a part of the page. names counts the figures of each name so far.
func build(given Program, number int, names map[string]int) (program, error) {
	given.Inputs = slices.Clone(given.Inputs)
	for i := range given.Inputs {
		given.Inputs[i].answer = answerOf(given.Inputs[i].Item)
	}
	p := program{Program: given, Name: titleOf(given.Inputs), About: about(given.Inputs), number: number}
	p.ID = p.nth("answer", "%s-%d")
	lead, leads := p.lead()
	p.Answer = p.answer(lead)
	var err error
	add := func(to *[]figure, list []drawing) {
		for _, d := range list {
			f, e := d()
			if errors.Is(e, plots.ErrNothing) {
				continue
			}
			if err = errors.Join(err, e); e == nil {
				if names[f.Name]++; names[f.Name] > 1 {
					f.Name = fmt.Sprintf("%s-%d", f.Name, names[f.Name])
				}
				*to = append(*to, figure{Figure: f})
			}
		}
	}
	var leading []figure
	if add(&leading, leads.figures(&p, []Input{lead})); len(leading) > 0 {
		p.Lead = &leading[0]
		p.Lead.Leads, p.Lead.Beside = true, len(p.Answer.Reasons)+len(p.Answer.Next) > 0
	}
	for _, k := range kinds() {
		inputs := p.of(k.is)
		if len(inputs) == 0 {
			continue
		}
		s := section{ID: p.nth(k.name, "%s-%d"), Title: k.title, Short: p.Nth(k.short), kind: k.name}
		if first := inputs[0].answer; strings.Contains(first.Line, key(first)) {
			s.Key = key(first)
		}
		if k.name != leads.name {
			add(&s.Figures, k.figures(&p, inputs))
		} else if len(inputs) == 1 || k.alone { // the lead's own
			s.Figures = leading[min(1, len(leading)):]
		} else {
			p.Of = p.called(lead)
			add(&s.Figures, k.figures(&p, inputs))
		}
		if s.fill(&p, inputs); len(s.Lines) == 0 { // the page says it above
			s.Key, s.Lines = "", []string{quantity.Count(len(s.Tables), "table")}
			if n := len(s.Figures); n > 0 {
				s.Lines[0] = quantity.Count(n, "more figure") + ", " + s.Lines[0]
			}
		}
		p.Sections = append(p.Sections, s)
	}
	return p, err
}

// fill adds what a section has of each of its inputs.
func (s *section) fill(p *program, inputs []Input) {
	for _, in := range inputs {
		of := ""
		if len(inputs) > 1 {
			of = p.called(in) + ": "
		}
		switch line := in.answer.Line; {
		case strings.HasPrefix(line, "Under "+strings.TrimSuffix(of, ": ")+","): // which names the input
			s.Lines = append(s.Lines, line)
		case line != p.Answer.Line || of != "":
			s.Lines = append(s.Lines, of+line)
		}
		for _, t := range in.Tables {
			if len(t.Rows) > 0 {
				s.Tables = append(s.Tables, viewOf(t, of))
			}
		}
		if rest := p.beyondChips(in); len(rest) > 0 {
			s.Notes = append(s.Notes, note{p.called(in), rest})
		}
	}
}

// called is the name of an input among others: of a trace its arm, if no other trace has it.
func (p *program) called(in Input) string {
	same := 0
	for _, o := range p.Inputs {
		if in.Trace != nil && o.Trace != nil && o.Trace.Arm == in.Trace.Arm {
			same++
		}
	}
	if same == 1 && slices.Contains(gain.Arms[:], gain.Arm(in.Trace.Arm)) {
		return gain.Arm(in.Trace.Arm).Label()
	}
	return shorten(in.Name, 40)
}

// of lists the inputs of a kind, of traces the learned arm first.
func (p *program) of(is func(source.Item) bool) (out []Input) {
	for _, in := range p.Inputs {
		if is(in.Item) {
			out = append(out, in)
		}
	}
	slices.SortStableFunc(out, func(a, b Input) int { return place(a) - place(b) })
	return out
}

func place(in Input) int {
	if in.Trace == nil {
		return 0
	}
	return max(0, slices.Index([]string{string(gain.Normal), string(gain.Perfect)}, in.Trace.Arm))
}

// Figures are all figures of the page, in its order.
func (p Page) Figures() (out []plots.Figure) {
	for _, part := range p.programs {
		if part.Lead != nil {
			out = append(out, part.Lead.Figure)
		}
		for _, s := range part.Sections {
			for _, f := range s.Figures {
				out = append(out, f.Figure)
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
	"tone": tone, "class": class, "words": strings.Fields, "mask": shown.Masked}).Parse(markup))

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
