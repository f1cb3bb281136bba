package output

import (
	"fmt"
	"io"
	"os"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/moebalance/moebalance/router/shown"
	"github.com/moebalance/moebalance/router/table"
)

// writer writes a document as text or Markdown.
type writer struct {
	View
	strings.Builder
}

// document writes the answer with its lead, or a listing with all its tables.
func (w *writer) document(d Document) {
	w.line(w.marked("**", w.prose(d.Headline)))
	if d.Answer != nil {
		w.answer(d)
		return
	}
	for _, t := range d.Tables {
		w.WriteString("\n")
		w.table(t, 20)
	}
	w.notes(d.Notes)
}

// answer writes its lines for other kinds of steps, the verdict with its basis, the numbers, the lead, the reasons, and
// what to do next.
func (w *writer) answer(d Document) {
	a, numbers, between := d.Answer, []string{}, "   "
	if w.Format == Markdown {
		between = " · " // blanks are one there
	}
	for _, line := range a.Kinds {
		w.line(w.prose(line))
	}
	w.line(w.prose(strings.TrimSuffix(string(a.Verdict)+" · "+a.Basis, " · ")))
	for _, n := range a.Numbers[:min(3, len(a.Numbers))] {
		numbers = append(numbers, n.String())
	}
	if len(numbers) > 0 {
		w.line(w.prose(strings.Join(numbers, between)))
	}
	if d.Lead != nil && d.Lead.Len() > 0 {
		w.table(*d.Lead, 10)
	}
	for _, r := range a.Reasons {
		w.line("- " + w.prose(r))
	}
	for _, step := range a.Next {
		w.line("Next: " + w.prose(step.Text))
		if step.Command != "" { // as it is typed
			w.line("  " + w.marked("`", shown.Text(step.Command)))
		}
	}
	if notes := a.CountNotes(len(d.Notes) - len(a.Caveats)); notes != "" {
		w.line(w.prose("Notes: " + notes + " (--table notes)"))
	}
}

// table writes a table with its title; of more than the most rows, it says how many there are.
func (w *writer) table(t table.Table, most int) {
	switch title := w.prose(t.Title); {
	case title != "" && w.Format == Markdown:
		w.line("### " + title)
	case title != "":
		w.line(title)
	}
	if t = t.Filled(); t.Len() > most {
		t = t.Cut(most)
	}
	w.line(w.drawn(t))
	switch {
	case t.Left > 0 && len(t.Leading) > 0:
		w.line(w.prose(fmt.Sprintf("… and %d more (largest first; --table %s shows all)", t.Left, t.Name)))
	case t.Left > 0:
		w.line(w.prose(fmt.Sprintf("… and %d more (--table %s shows all)", t.Left, t.Name)))
	}
}

// drawn is the table for people, cut where the terminal ends.
func (w *writer) drawn(t table.Table) string {
	p, style := pretty.NewWriter(), pretty.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = pretty.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight, style.Box.UnfinishedRow = "", "  ", "…"
	style.Size.WidthMax = w.Width
	p.SetStyle(style)
	p.SuppressTrailingSpaces()
	var head pretty.Row
	var configs []pretty.ColumnConfig
	rows := make([]pretty.Row, t.Len())
	for i, c := range t.Shown() {
		align := text.AlignLeft
		if c.Numeric() {
			align = text.AlignRight
		}
		head = append(head, c.Head)
		configs = append(configs, pretty.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
		for row, cell := range c.Cells {
			rows[row] = append(rows[row], w.escaped(cell))
		}
	}
	p.SetColumnConfigs(configs)
	p.AppendHeader(head)
	p.AppendRows(rows)
	if w.Format == Markdown {
		return p.RenderMarkdown()
	}
	return p.Render()
}

// notes writes them one below the other.
func (w *writer) notes(notes []string) {
	for i, n := range notes {
		w.line(w.prose(fmt.Sprintf("[%d] %s", i+1, n)))
	}
}

// line writes a line, which is a paragraph in Markdown.
func (w *writer) line(words string) {
	if w.WriteString(words + "\n"); w.Format == Markdown {
		w.WriteString("\n")
	}
}

// prose is a text of any origin on one line.
func (w *writer) prose(words string) string { return w.escaped(shown.Text(words)) }

// escaped keeps names from being read as Markdown: as HTML, links, code or emphasis. Of bars in cells
// go-pretty takes care.
func (w *writer) escaped(words string) string {
	if w.Format != Markdown {
		return words
	}
	return markdown.Replace(words)
}

var markdown = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`,
	"]", `\]`, "~", `\~`)

// marked is a text between marks of Markdown.
func (w *writer) marked(mark, words string) string {
	if w.Format != Markdown {
		return words
	}
	return mark + words + mark
}

// Width is the number of columns of the terminal that w writes to, where tables are cut. It is 0 for pipes, files and
// terminals that cannot (TERM=dumb).
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return 0
	}
	width, _, _ := term.GetSize(int(f.Fd()))
	return max(0, width)
}
