package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts"
)

// FormatList is one line per format, for help.
func FormatList() string {
	var b strings.Builder
	for _, f := range counts.Formats() {
		fmt.Fprintf(&b, "  %-19s %s\n", f.ID, f.Name)
	}
	return b.String()
}

// FormatHelp describes the formats that the names are of.
func FormatHelp(names []string) string {
	var b strings.Builder
	for _, f := range counts.Formats() {
		if slices.Contains(names, f.ID) {
			fmt.Fprintf(&b, "%s: %s\n\nLooks like:\n  %s\n\nRecorded by:\n  %s\n", f.ID, f.Name, f.Header, f.Origin)
		}
	}
	return b.String()
}
