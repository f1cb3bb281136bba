package source

import (
	"slices"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// TraceWarnings are those of a trace and of its exports.
func TraceWarnings(t *nsys.Trace) []router.Warning {
	all := slices.Clone(t.Warnings)
	for _, e := range t.Exports {
		all = append(all, e.Warnings...)
	}
	return all
}

// WarningGroup is a warning with the subjects that it is about.
type WarningGroup struct {
	Text     string
	Subjects []string // each once
}

// GroupWarnings puts warnings of the same text together, in the order of their first
// appearance.
func GroupWarnings(warnings []router.Warning) (groups []WarningGroup) {
	for _, w := range warnings {
		i := slices.IndexFunc(groups, func(g WarningGroup) bool { return g.Text == w.Text })
		if i < 0 {
			i, groups = len(groups), append(groups, WarningGroup{Text: w.Text})
		}
		if !slices.Contains(groups[i].Subjects, w.Subject) {
			groups[i].Subjects = append(groups[i].Subjects, w.Subject)
		}
	}
	return groups
}
