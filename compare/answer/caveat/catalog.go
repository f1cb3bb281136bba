package caveat

import (
	_ "embed" // of the catalog
	"strings"
)

// catalogText words what traces, counts, placements, comparisons and checks find, one a line. A code whose cases
// need different words has an entry for each, behind a dot; a case without one takes the words of its code, and a rare
// code without any is told by its name. One that is more than a note begins with its severity; what checks of campaigns
// find weighs by their status.
//
//go:embed catalog.txt
var catalogText string

// sentencesText has what verdicts rest on, behind "basis", the reasons of answers, behind "why", and clauses of lines.
//
//go:embed sentences.txt
var sentencesText string

var catalog, sentences = byKey(catalogText), byKey(sentencesText)

// byKey are the lines of a text, "key: words", but for comments.
func byKey(text string) map[string]string {
	words := map[string]string{}
	for line := range strings.Lines(text) {
		if key, text, found := strings.Cut(strings.TrimSpace(line), ": "); found && key[0] != '#' {
			words[key] = text
		}
	}
	return words
}

// unchecked words why a check had nothing to look at, for checks without words of their own for it.
var unchecked = map[string]string{"few": "too few launches to tell", "unrecorded": "was not recorded"}
