// Package output is the single place where a result becomes text, in four
// formats: aligned text for people, JSON for programs, CSV for one table of raw
// numbers, Markdown for a pull request.
//
// A verb builds one Document: the answer, tables of typed cells, and the value that JSON
// carries. People see the answer with one table; they ask for the others by name.
package output

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/moebalance/moebalance/compare/answer"
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

// ParseFormat is the format of a name.
func ParseFormat(name string) (Format, error) {
	if !slices.Contains(Formats, Format(name)) {
		return "", errors.New("want one of text, json, csv, md")
	}
	return Format(name), nil
}

// Document is one result.
type Document struct {
	Headline string         // one line: the answer, or the title of a listing
	Answer   *answer.Answer // nil for listings, which answer nothing
	Lead     *table.Table   // what people see with the answer; nil for none
	Tables   []table.Table
	Notes    []string // shown on demand beside an answer, its caveats first
	Value    any      // what JSON carries
	Why      string   // why a gate fails, in short, for people who do not read the result
}

// Notes is the name by which the notes are asked for, which people see behind the answer.
const Notes = "notes"

// View is the part of a document that is shown, and its format, as flags say it.
type View struct {
	Format Format `flag:"format" preset:"text"`
	JSON   bool   `flag:"json"`  // the format, too
	Table  string `flag:"table"` // the only table, by name, whole; "" is the lead, or for CSV the first
	Brief  bool   `flag:"brief"` // the answer's line alone
	Width  int    // of the terminal (Width), 0 for none
}

// Write renders d.
func Write(w io.Writer, v View, d Document) error {
	text, alone := &writer{View: v}, d.Named(v.Table)
	switch {
	case v.Format == JSON:
		return writeJSON(w, d.Value)
	case v.Format == CSV:
		return alone.CSV(w)
	case v.Brief:
		text.line(text.prose(d.Headline))
	case v.Table == Notes:
		text.notes(d.Notes)
	case v.Table != "":
		text.table(*alone, alone.Len())
	default:
		text.document(d)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// writeJSON writes a value as it goes: traces of large captures have millions of lines. Texts are written
// without secrets; names of kernels come again and again.
func writeJSON(w io.Writer, value any) error {
	known := map[string]string{}
	masked := json.MarshalToFunc(func(e *jsontext.Encoder, text string) error {
		clean, ok := known[text]
		if !ok {
			clean = shown.Masked(text)
			known[text] = clean
		}
		return e.WriteToken(jsontext.String(clean))
	})
	return json.MarshalEncode(jsontext.NewEncoder(w, jsontext.WithIndent("  ")), value, jsonv1.DefaultOptionsV1(),
		json.FormatNilSliceAsNull(false), jsontext.EscapeForHTML(false), json.WithMarshalers(masked))
}

// Named is a copy of the table of this name, the first for "". Where the result has none, the title says so.
func (d Document) Named(name string) *table.Table {
	notes := table.Of(Notes, "", d.Notes, "note", table.Computed("note", func(note string) any { return note }))
	var names []string
	for _, t := range append(slices.Clone(d.Tables), notes) {
		if names = append(names, t.Name); name == "" || t.Name == name {
			return &t
		}
	}
	return &table.Table{Name: name, Title: fmt.Sprintf("%s: none in this result, which has %s", name,
		strings.Join(names, ", "))}
}

// CheckTable refuses a name that is no table of a verb, and not Notes.
func CheckTable(name string, tables []string) error {
	if name == "" || name == Notes || slices.Contains(tables, name) {
		return nil
	}
	return fmt.Errorf("--table: no such table %q: want one of %s, %s%s", name, strings.Join(tables, ", "), Notes,
		router.Near(name, append(tables, Notes)))
}
