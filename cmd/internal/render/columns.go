// Package render lays results out as documents: a headline that answers, tables and notes. It
// computes nothing that a result does not hold.
package render

import (
	"path/filepath"
	"slices"
	"strings"

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
