package main

import (
	"regexp"

	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits/hook"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router/input"
)

// marks are how what we write begins: results, pages, figures and the hook. Placements and data sets have an
// engine's own layout, which tells nobody who wrote them, so they are replaced only with --force.
const marks = `(?s)^(?:\{\n  "schema_version": \d+,\n  "kind": "|` +
	`<!DOCTYPE html>.{0,500}<meta name="generator" content="moebalance"/>|` +
	`\Q` + plots.Mark + `\E` +
	`|.PNG\r\n.{0,60}Software\x00moebalance|` +
	hook.Mark + `|Metadata-Version: [\d.]+\nName: moebalance|\[vllm\.general_plugins\]\nmoebalance)`

// wrote reports whether this program wrote a file.
func wrote(path string) bool {
	head, err := input.Head(path, 4096)
	return err == nil && regexp.MustCompile(marks).Match(head) || trace.IsSummary(path)
}
