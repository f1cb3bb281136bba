package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
)

func logitsCmd() *cobra.Command {
	c := command("logits", nil, needsVerb)
	c.AddCommand(logitsGenerateCmd(), logitsVerifyCmd(), logitsListCmd(), logitsPlansCmd())
	return c
}

// gateFlags choose a gate and the ranks its experts lie on.
type gateFlags struct {
	source.Gate
	ranks int
	mode  router.Mode
}

func (g *gateFlags) bind(c *cobra.Command) {
	g.bindModel(c)
	f := c.Flags()
	f.Float32Var(&g.Scale, "scale", 0, "routed scaling factor (default: of the model, or 1)")
	f.StringVar(&g.BiasFile, "bias", "",
		"checkpoint with the correction bias: a safetensors `FILE`, the index of a sharded one, or its folder")
	f.StringVar(&g.BiasTensor, "bias-tensor", "",
		"`NAME` of the bias tensor, such as model.layers.3.mlp.gate.e_score_correction_bias")
	f.IntVar(&g.ranks, "ep", 0, "expert-parallel ranks")
	g.bindRanks(c)
}

// bindRanks binds what ranks hold, but not how many there are.
func (g *gateFlags) bindRanks(c *cobra.Command) {
	c.Flags().StringVar(&g.Placement, "placement", "",
		"JSON `FILE` with the experts of each rank, [[0,1],[2,3]]; replicas allowed (default contiguous)")
	flags.Parsed(c, &g.mode, router.ParseMode, "mode", string(router.DEP),
		"dep: each rank has its own tokens; tep: all ranks hold the same tokens", string(router.DEP),
		string(router.TEP))
}

// bindModel binds the flags that name a model or describe one.
func (g *gateFlags) bindModel(c *cobra.Command) {
	f := c.Flags()
	bindModel(c, &g.Model, &g.Config)
	f.IntVar(&g.Shape.Experts, "experts", 0, "routed experts of a layer, instead of --model")
	f.IntVar(&g.Shape.TopK, "top-k", 0, "experts per token, with --experts")
	f.IntVar(&g.Shape.Groups, "groups", 0, "expert groups, with --experts (default none)")
	f.IntVar(&g.Shape.TopKGroups, "top-k-groups", 0, "groups per token, with --groups")
	flags.Parsed(c, &g.Method, router.ParseMethod, "method", "",
		"routing method (default: of the model; with --experts Renormalize, with --groups DeepSeekV3)",
		methodNames()...)
}

// methodNames are what --method takes.
func methodNames() (names []string) {
	for _, m := range router.Methods() {
		names = append(names, string(m))
	}
	return names
}

func (g *gateFlags) check() error {
	switch err := g.Check(); {
	case err != nil:
		return err
	case g.ranks != 0 && g.Placement != "":
		return usagef("want --ep or --placement, which has its own number of ranks")
	case g.ranks < 1 && g.Placement == "":
		return usagef("want --ep with at least 1 rank, or --placement")
	}
	return nil
}

// showEntries shows on a terminal how many entries are done; stop takes the line away.
func showEntries(stderr io.Writer) (show func(done, total int), stop func()) {
	line := progress.New(stderr, false)
	return func(done, total int) {
		line.Show(float64(done)/float64(max(1, total)), "%d of %d entries", done, total)
	}, line.Clear
}
