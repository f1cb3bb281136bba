package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
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

// Page is a report on one program, ready to be written. It is immutable.
type Page struct {
	Title    string
	Report   []Fact // about the page
	About    []Fact // about the measurement
	Of       string // the input that the answer and its figure are of, where there are several
	Answer   answer.Answer
	Lead     *plots.Figure // shows the answer
	Sections []section
	inputs   []Input
}

// Fact is something known about a measurement or the report, such as its date.
type Fact struct{ Name, Value string }

// Input is one result and how its verb prints it.
type Input struct {
	source.Item
	Answer answer.Answer
	Tables []table.Table
	Notes  []string
}

// section is the results of one kind: the question that they answer, the answers, and what
// supports them.
type section struct {
	ID, Title, Short string
	Lines            []line
	Figures          []plots.Figure
	Tables           []table.Table
	Notes            []note
}

// line is the answer of an input, and its evidence where the page does not say it above: the steps that a gain is of.
type line struct{ Text, Basis string }

// note is the caveats of one input.
type note struct {
	Of    string
	Texts []string
}

// New builds a page of at least one input. Without a title it is named after the benchmark's
// command or the inputs.
func New(title string, report []Fact, inputs ...Input) Page {
	p := Page{Title: cmp.Or(title, titleOf(inputs)), Report: report, About: about(inputs), inputs: slices.Clone(inputs)}
	p.build()
	return p
}

// drawn are the figures of a kind that have data.
func (p *Page) drawn(k kind, inputs []Input) []plots.Figure {
	return slices.DeleteFunc(k.figures(p, inputs), plots.Figure.Empty)
}

// build answers by the strongest evidence, and makes a section for each kind of results.
func (p *Page) build() {
	lead, leads := p.lead()
	p.Answer = p.answer(lead)
	leading := p.drawn(leads, []Input{lead})
	if len(leading) > 0 {
		p.Lead = &leading[0]
	}
	for _, k := range kinds() {
		inputs := p.of(k.is)
		if len(inputs) == 0 {
			continue
		}
		s := section{ID: k.name, Title: k.title, Short: k.short}
		if k.name == leads.name && len(inputs) == 1 { // the lead's own
			s.Figures = leading[min(1, len(leading)):]
		} else {
			s.Figures = p.drawn(k, inputs)
		}
		if k.name == leads.name && len(inputs) > 1 {
			p.Of = p.called(lead)
		}
		if s.fill(p, inputs); len(s.Lines) == 0 { // the page says it above
			has := quantity.Count(len(s.Tables), "table")
			if n := len(s.Figures); n > 0 {
				has = quantity.Count(n, "more figure") + ", " + has
			}
			s.Lines = []line{{Text: has}}
		}
		p.Sections = append(p.Sections, s)
	}
	names := map[string]int{} // how many figures have each name
	for _, f := range p.Figures() {
		if names[f.Name]++; names[f.Name] > 1 {
			f.Name = fmt.Sprintf("%s-%d", f.Name, names[f.Name])
		}
	}
}

// Figures are all figures of the page, in its order.
func (p *Page) Figures() (out []*plots.Figure) {
	if p.Lead != nil {
		out = append(out, p.Lead)
	}
	for _, s := range p.Sections {
		for i := range s.Figures {
			out = append(out, &s.Figures[i])
		}
	}
	return out
}

// Key is the number that the answer leads with: the first of its numbers that its line names, else the first.
func (p Page) Key() string {
	named := slices.IndexFunc(p.Answer.Numbers, func(n answer.Number) bool {
		return strings.Contains(p.Answer.Line, strings.Trim(n.Shown(), "−+"))
	})
	if len(p.Answer.Numbers) == 0 {
		return ""
	}
	return p.Answer.Numbers[max(0, named)].Shown()
}

// fill adds what a section has of each of its inputs.
func (s *section) fill(p *Page, inputs []Input) {
	for _, in := range inputs {
		of := ""
		if len(inputs) > 1 {
			of = p.called(in) + ": "
		}
		text := in.Answer.Line
		if !strings.HasPrefix(text, "Under "+strings.TrimSuffix(of, ": ")+",") { // which names the input
			text = of + text
		}
		if of != "" || text != p.Answer.Line {
			s.Lines = append(s.Lines, line{text, in.Answer.Basis})
		}
		for _, t := range in.Tables {
			if t.Len() > 0 {
				s.Tables = append(s.Tables, viewOf(t, of))
			}
		}
		if rest := p.beyondAnswer(in); len(rest) > 0 {
			s.Notes = append(s.Notes, note{p.called(in), rest})
		}
	}
}

// called is the name of an input among others: of a trace its arm, if no other trace has it.
func (p *Page) called(in Input) string {
	same := 0
	for _, o := range p.inputs {
		if in.Trace != nil && o.Trace != nil && o.Trace.Arm == in.Trace.Arm {
			same++
		}
	}
	if same == 1 && slices.Contains(gain.Arms[:], gain.Arm(in.Trace.Arm)) {
		return gain.Arm(in.Trace.Arm).Label()
	}
	return shorten(in.Name, 40)
}

// of lists the inputs of a kind, traces of the balanced arm last.
func (p *Page) of(is func(source.Item) bool) (out []Input) {
	for _, balanced := range []bool{false, true} {
		for _, in := range p.inputs {
			if is(in.Item) && balanced == (in.Trace != nil && in.Trace.Arm == string(gain.Perfect)) {
				out = append(out, in)
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
	"tone": tone, "class": class, "words": strings.Fields, "mask": shown.Masked, "drawing": inline}).Parse(markup))

// tone is by what a verdict means for the user: a placement that is worth a trial is good news.
func tone(v answer.Verdict) string {
	switch v {
	case "even", "load without time", "complete", "below the threshold", "faster", "equivalent", "not now",
		"worth a trial":
		return "good"
	case "uneven", "late launches", "slower GPU", "attention uneven", "failed", "not comparable", "imbalance significant",
		"slower", "invalid":
		return "bad"
	}
	return "warn"
}

// inline is a figure as the address of an image that holds it.
func inline(f plots.Figure) (template.URL, error) {
	var b bytes.Buffer
	err := f.WriteDrawing(&b)
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(b.Bytes())), err
}

// Policy lets the page load nothing but the figures in it, run nothing, and have this one style:
// whatever a name in it is taken for, it does nothing.
func (p Page) Policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"
}

// Style is the style sheet.
func (p Page) Style() template.CSS { return template.CSS(style) }

// Write writes the page as one HTML document.
func (p Page) Write(w io.Writer) error {
	var b strings.Builder
	if err := layout.Execute(&b, p); err != nil {
		return err
	}
	_, err := io.WriteString(w, shown.Visible(b.String()))
	return err
}
