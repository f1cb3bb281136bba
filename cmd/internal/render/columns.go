// Package render lays results out as documents: a headline that answers, tables and notes. It
// computes nothing that a result does not hold.
package render

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/table"
)

// The columns of each kind. The key, which is also the JSON key of the field, is the
// name with underscores unless given; that of a duration ends in _ns.
func label(name string, key ...string) table.Column   { return column(table.Label, name, key) }
func count(name string, key ...string) table.Column   { return column(table.Count, name, key) }
func ratio(name string, key ...string) table.Column   { return column(table.Ratio, name, key) }
func percent(name string, key ...string) table.Column { return column(table.Percent, name, key) }
func size(name string, key ...string) table.Column    { return column(table.Bytes, name, key) }
func real(name string, key ...string) table.Column    { return column(table.Real, name, key) }

func duration(name string, key ...string) table.Column {
	if key == nil {
		key = []string{column(table.Duration, name, nil).Key + "_ns"}
	}
	return column(table.Duration, name, key)
}

var keyed = strings.NewReplacer(" ", "_", "-", "_", "/", "_over_")

func column(kind table.Kind, name string, key []string) table.Column {
	c := table.Column{Name: name, Key: keyed.Replace(name), Kind: kind}
	if key != nil {
		c.Key = key[0]
	}
	return c
}

// computed is a column of cells that are no field of the item.
func computed[T any](c table.Column, cell func(T) any) table.Column {
	c.Cell = func(item any) any { return cell(item.(T)) }
	return c
}

// within keeps the columns' unit apart from that of others of the same kind.
func within(group string, columns ...table.Column) []table.Column {
	for i := range columns {
		columns[i].Group = group
	}
	return columns
}

// alarming marks the rows in which the column has one of these cells.
func alarming(c table.Column, cells ...string) table.Column {
	c.Alarm = cells
	return c
}

// short is the last part of a path where that tells it from those of all items.
func short[T any](path string, all []T, of func(T) string) string {
	base := filepath.Base(path)
	if slices.ContainsFunc(all, func(o T) bool { return of(o) != path && filepath.Base(of(o)) == base }) {
		return path
	}
	return base
}

// Of is the document of a result of any kind.
func Of(in source.Item) output.Document {
	switch {
	case in.Campaign != nil:
		return Campaign(*in.Campaign)
	case in.Trace != nil:
		return Trace(in.Trace, in.Name)
	case in.Compared != nil:
		return Comparison(*in.Compared)
	case in.Counts != nil:
		return Counts(in.Counts, in.Name)
	case in.Place != nil:
		return Place(in.Place, "")
	}
	return VerifiedCache(in.Name, *in.Cache)
}

// NotComparable is the first result whose sides are not comparable, and why: of campaigns, or else of
// traces. The name is empty where there is none.
func NotComparable(items []source.Item) (name, why string) {
	judged := slices.ContainsFunc(items, func(in source.Item) bool { return in.Campaign != nil })
	for _, in := range items {
		switch {
		case in.Campaign != nil && in.Campaign.Verdict == gain.NotComparable:
			return in.Name, answer.Why(in.Campaign.Asked())
		case in.Compared != nil && !in.Compared.Comparable && !judged:
			return in.Name, strings.Join(answer.Refusals(in.Compared), "; ")
		}
	}
	return "", ""
}

// document is an answer with its tables; notes come beside its caveats.
func document(a answer.Answer, notes []string, value any, tables ...table.Table) output.Document {
	shown := &output.Answer{
		Line: a.Line, Verdict: string(a.Verdict), Tone: output.Tone(a.Verdict.Tone()), Basis: a.Basis,
		Reasons: a.Reasons, Notes: a.CountNotes(len(notes)),
	}
	for _, n := range a.Numbers {
		shown.Numbers = append(shown.Numbers, n.String())
	}
	for _, step := range a.Next {
		if step.Command != "" {
			shown.Next = append(shown.Next, step.Command)
		}
	}
	d := output.Document{Answer: shown, Tables: tables, Value: value}
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
