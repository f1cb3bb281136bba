package render

import (
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/router/table"
)

// answered is what JSON carries: the members of a result, then the answer.
type answered[T any] struct {
	Result T              `json:",embed"`
	Answer *answer.Answer `json:"answer"`
}

// document is an answer with its tables; notes come beside its caveats.
func document[T any](a answer.Answer, notes []string, result T, tables ...table.Table) output.Document {
	d := output.Document{Headline: a.Line, Answer: &a, Tables: tables, Value: answered[T]{result, &a}}
	for _, c := range a.Caveats {
		note := c.String()
		if c.Severity != answer.Note {
			note = string(c.Severity) + ": " + note
		}
		d.Notes = append(d.Notes, note)
	}
	d.Notes = append(d.Notes, notes...)
	return d
}
