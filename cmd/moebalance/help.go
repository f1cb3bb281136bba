package main

import (
	"embed"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/manual"
)

//go:embed help
var help embed.FS

// first are the flags that --help shows of a verb with many, beside the first paragraph of its
// description and three examples; --help-all shows all. Verbs that are not here show all at once.
var first = map[string]string{
	"bench": "treatment server client ready control points arm routers launches blocks pairs counts result metric" +
		" threshold require-verdict campaign resume",
	"profile":  "iterations cuda-graph-trace dir perfect treatment nsys-arg dry-run",
	"hook":     "output force help",
	"workload": "ranks tokens steps skew seed stats serve url",
	"trace":    "counts model steps rank phase threshold fail-above summary table top notes format",
	"compare": "arms campaign step-tokens counts-normal counts-perfect model steps metric threshold" +
		" require-verdict trust-arms table notes format",
	"counts": "ep placement model axes since for threshold fail-above table top notes format",
	"place": "ep redundant judge from max-moves model write-trtllm write-sglang write-vllm trace counts campaign" +
		" step-tokens table notes format",
	"report":          "output title counts-normal counts-perfect model steps step-tokens png svg",
	"logits-generate": "cache ep model experts top-k mode dtype plan tokens rank",
	"logits-plans":    "model experts top-k ep tokens plans table format",
	"quickstart":      "dir force help",
}

// command is a verb with its file in help.
func command(file string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	return manual.Command(help, "help/"+file+".txt", first[file], args, run)
}

// The heading of flags about outputs.
const outputSection = manual.OutputSection

// section gives the flags that were added since the last call a heading in help.
func section(c *cobra.Command, heading string) { manual.Section(c, heading) }
