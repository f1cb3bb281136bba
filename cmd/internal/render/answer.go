package render

import (
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/router/table"
)

// document is an answer with its tables; notes come beside its caveats.
func document(a answer.Answer, notes []string, value any, tables ...table.Table) output.Document {
	d := output.Document{Headline: a.Line, Answer: &a, Tables: tables, Value: value}
	for _, c := range a.Caveats {
		text := c.String()
		if c.Severity != answer.Note {
			text = string(c.Severity) + ": " + text
		}
		d.Notes = append(d.Notes, text)
	}
	d.Notes = append(d.Notes, notes...)
	return d
}
