package render

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/compare/counts"
)

// FormatList is, for help, each format of expert counts with how it is recorded.
func FormatList() string {
	var b strings.Builder
	for _, f := range counts.Formats() {
		fmt.Fprintf(&b, "  %-19s %s\n%22s%s\n", f.ID, f.Name, "", f.Origin)
	}
	return b.String()
}
