// Package testdata carries the captures that `moebalance quickstart` reads, so
// that the tool can show its whole story wherever it is installed. README.md
// beside this file says how each capture was made.
package testdata

import "embed"

// Captures holds a campaign of one program, and its exports and expert counts of the
// normal and the perfect arm, under their paths in this folder.
//
//go:embed campaign-deepseek-ep4.json deepseek-ep4-ranks
var Captures embed.FS
