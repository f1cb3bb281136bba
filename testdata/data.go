// Package testdata carries the captures that `moebalance quickstart` reads, so
// that the tool can show its whole story wherever it is installed. README.md
// beside this file says how each capture was made.
package testdata

import "embed"

// Captures holds the exports and expert counts of two models, normal and
// perfect arm, under their paths in this folder.
//
//go:embed gptoss-ep4-loop deepseek-ep4-ranks
var Captures embed.FS
