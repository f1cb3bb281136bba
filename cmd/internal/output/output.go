// Package output is the single place where a result becomes text, in four
// formats: aligned text for people, JSON for programs, CSV for one table of raw
// numbers, Markdown for a pull request. It knows no word of the domain.
//
// A verb builds one Document: the answer, tables of typed cells, and the value that JSON
// carries. People see the answer with one table; they ask for the others by name.
package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	gopretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/shown"
	"github.com/moebalance/moebalance/router/table"
)

// Format is a way of writing a Document.
type Format string

// The formats.
const (
	Text     Format = "text"
	JSON     Format = "json"
	CSV      Format = "csv"
	Markdown Format = "md"
)

// Formats lists them in the order help shows them.
var Formats = []Format{Text, JSON, CSV, Markdown}

// Document is one result.
type Document struct {
	Answer *Answer      // nil for listings, which answer nothing
	Lead   *table.Table // what people see with the answer; nil for none

	Headline string // of a listing, one line
	Tables   []table.Table
	Notes    []string // shown on demand beside an answer
	Value    any      // what JSON carries
}

// Named is a copy of the table of this name, empty where there is none.
func (d Document) Named(name string) *table.Table {
	t, _ := d.table(name)
	return &t
}

// Answer is the part of a document that people read first.
type Answer struct {
	Line    string // the answer, in one sentence
	Verdict string
	Tone    Tone   // of the verdict
	Basis   string // what the verdict rests on
	Numbers []string
	Reasons []string
	Next    []string // commands as typed
	Notes   string   // how many notes there are, in words; empty for none
}

// Tone is how a verdict is colored.
type Tone int

// The tones, with their colors.
const (
	Undecided Tone = iota // yellow
	Fine                  // green
	Costs                 // red
)

// Brief is the answer's line alone.
func (d Document) Brief() Document {
	if d.Answer != nil {
		return Document{Headline: d.Answer.Line, Value: d.Value}
	}
	return Document{Headline: d.Headline, Value: d.Value}
}

// ErrNoTable is wrapped by the error about a table that a document lacks.
var ErrNoTable = errors.New("no such table")

// Notes is the name by which the notes are asked for, which people see behind the answer.
const Notes = "notes"

// View is the part of a document that is shown, and its format.
type View struct {
	Format Format
	Table  string // the only table, by name, whole; "" is all of them, for CSV the first
	Screen Screen
}

// Write renders d. An unknown table is an ErrNoTable that lists the known ones.
func Write(w io.Writer, v View, d Document) error {
	switch v.Format {
	case JSON:
		// as it goes: traces of large captures have millions of lines
		e := jsontext.NewEncoder(w, jsontext.WithIndent("  "))
		err := json.MarshalEncode(e, d.Value, jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false),
			json.WithMarshalers(masked()))
		if full := (*fs.PathError)(nil); errors.As(err, &full) {
			return full // a full disk is no matter of the value that met it
		}
		return err
	case CSV:
		t, err := d.table(v.Table)
		if err != nil {
			return err
		}
		return t.CSV(w)
	}
	tables, fits, most := d.lead(), 20, 12
	if d.Answer != nil {
		fits, most = 10, 10
	}
	if v.Table != "" && v.Table != Notes {
		t, err := d.table(v.Table)
		if err != nil {
			return err
		}
		tables, fits = []table.Table{t}, len(t.Rows)
	}
	for i, t := range tables {
		if tables[i] = t.Filled(); len(t.Rows) > fits {
			tables[i] = tables[i].Cut(most)
		}
	}
	if v.Format != Text {
		v.Screen = Screen{}
	}
	_, err := io.WriteString(w, d.render(v, tables))
	return err
}

// masked writes texts without secrets. Names of kernels come again and again.
func masked() *json.Marshalers {
	known := map[string]string{}
	return json.MarshalToFunc(func(e *jsontext.Encoder, text string) error {
		clean, ok := known[text]
		if !ok {
			clean = shown.Masked(text)
			known[text] = clean
		}
		return e.WriteToken(jsontext.String(clean))
	})
}

// TableNames are the names of the tables, in their order.
func (d Document) TableNames() []string {
	names := make([]string, len(d.Tables))
	for i, t := range d.Tables {
		names[i] = t.Name
	}
	return names
}

func (d Document) table(name string) (table.Table, error) {
	for _, t := range d.Tables {
		if name == "" || t.Name == name {
			return t, nil
		}
	}
	if name == Notes {
		t := table.New(Notes, "", "note")
		for _, note := range d.Notes {
			t.Rows = append(t.Rows, []any{note})
		}
		return t, nil
	}
	names := d.TableNames()
	return table.Table{}, fmt.Errorf("%w %q in this result: want one of %s%s", ErrNoTable, name, strings.Join(names, ", "),
		router.Near(name, names))
}

// lead are the tables that people see who ask for none: the one beside an answer, or all tables
// in a listing.
func (d Document) lead() []table.Table {
	if d.Answer == nil {
		return slices.Clone(d.Tables)
	}
	if d.Lead == nil || len(d.Lead.Rows) == 0 {
		return nil
	}
	return []table.Table{*d.Lead}
}

func (d Document) render(v View, tables []table.Table) string {
	w := writer{View: v}
	switch a := d.Answer; {
	case v.Table != "" && v.Table != Notes:
		w.table(tables[0])
		return strings.TrimPrefix(w.String(), "\n")
	case a == nil:
		w.WriteString(w.Screen.bold(w.prose(d.Headline)) + "\n")
		for _, t := range tables {
			w.WriteString("\n")
			w.table(t)
		}
		w.notes(d.Notes)
	default:
		w.answer(a)
		for _, t := range tables {
			w.table(t)
		}
		w.follow(a)
		if v.Table == Notes {
			w.notes(d.Notes)
		} else if a.Notes != "" {
			w.line("Notes: " + a.Notes + " (--table notes)")
		}
	}
	return w.String()
}

// prose is a text for the screen, or for Markdown.
func (v View) prose(words string) string {
	if v.Format == Markdown {
		return markdown.Replace(shown.Text(words))
	}
	return shown.Text(words)
}

// markdown keeps names from being read as markup: as HTML, links, code or emphasis. Of
// bars in cells the table takes care.
var markdown = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`,
	"]", `\]`, "~", `\~`)

// gap is between two columns.
const gap = "  "

// pretty draws the table for people, and says whether lines are cut where the screen ends.
func pretty(t table.Table, v View) (drawn string, cut bool) {
	p := gopretty.NewWriter()
	style := gopretty.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = gopretty.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight, style.Box.UnfinishedRow = "", gap, "…"
	columns := t.Shown()
	head, configs := make(gopretty.Row, len(columns)), make([]gopretty.ColumnConfig, len(columns))
	width := 0
	for i, c := range columns {
		head[i] = c.Head
		configs[i] = gopretty.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
		if !c.Numeric() {
			configs[i].Align, configs[i].AlignHeader = text.AlignLeft, text.AlignLeft
		}
		widest := text.StringWidth(c.Head)
		for _, cell := range c.Cells {
			widest = max(widest, text.StringWidth(cell))
		}
		width += widest + len(gap)
	}
	if v.Screen.Width > 0 && width > v.Screen.Width {
		style.Size.WidthMax, cut = v.Screen.Width, true
	}
	p.SetStyle(style)
	p.SuppressTrailingSpaces()
	p.SetColumnConfigs(configs)
	p.AppendHeader(head)
	for row := range t.Rows {
		cells := make(gopretty.Row, len(columns))
		for i, c := range columns {
			if cells[i] = c.Cells[row]; v.Format == Markdown {
				cells[i] = markdown.Replace(c.Cells[row])
			}
		}
		p.AppendRow(cells)
	}
	if v.Format == Markdown {
		return p.RenderMarkdown(), false
	}
	return p.Render(), cut
}
