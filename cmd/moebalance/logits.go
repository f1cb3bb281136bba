package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

func logitsCmd() *cobra.Command {
	c := command("logits", nil, needsVerb)
	c.AddCommand(logitsGenerateCmd(), logitsVerifyCmd(), logitsListCmd(), logitsPlansCmd(), logitsSchemaCmd())
	return c
}

// gateFlags choose a gate and the ranks its experts lie on.
type gateFlags struct {
	modelFlags
	experts, topK      int
	groups, topKGroups int
	scale              float32
	biasFile           string
	biasTensor         string
	ranks              int
	placement          string
	mode               router.Mode
}

func (g *gateFlags) bind(c *cobra.Command) {
	g.bindModel(c)
	f := c.Flags()
	f.Float32Var(&g.scale, "scale", 0, "routed scaling factor (default: of the model, or 1)")
	f.StringVar(&g.biasFile, "bias", "",
		"checkpoint with the correction bias: a safetensors `FILE`, the index of a sharded one, or its folder")
	f.StringVar(&g.biasTensor, "bias-tensor", "",
		"`NAME` of the bias tensor, such as model.layers.3.mlp.gate.e_score_correction_bias")
	f.IntVar(&g.ranks, "ep", 0, "expert-parallel ranks")
	g.bindRanks(c)
}

// bindRanks binds what ranks hold, but not how many there are.
func (g *gateFlags) bindRanks(c *cobra.Command) {
	c.Flags().StringVar(&g.placement, "placement", "",
		"JSON `FILE` with the experts of each rank, [[0,1],[2,3]]; replicas allowed (default contiguous)")
	flags.Parsed(c, &g.mode, router.ParseMode, "mode", string(router.DEP),
		"dep: each rank has its own tokens; tep: all ranks hold the same tokens", string(router.DEP),
		string(router.TEP))
}

// bindModel binds the flags that name a model or describe one.
func (g *gateFlags) bindModel(c *cobra.Command) {
	f := c.Flags()
	g.modelFlags.bind(c)
	f.IntVar(&g.experts, "experts", 0, "routed experts of a layer, instead of --model")
	f.IntVar(&g.topK, "top-k", 0, "experts per token, with --experts")
	f.IntVar(&g.groups, "groups", 0, "expert groups, with --experts (default none)")
	f.IntVar(&g.topKGroups, "top-k-groups", 0, "groups per token, with --groups")
	flags.Parsed(c, &g.method, router.ParseMethod, "method", "",
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

func (g *gateFlags) checkModel() error {
	named := 0
	for _, given := range []bool{g.model != "", g.config != "", g.experts != 0} {
		if given {
			named++
		}
	}
	switch {
	case named == 0:
		return usagef("want --model NAME, --config FILE, or --experts with --top-k")
	case named > 1:
		return usagef("want one of --model, --config and --experts, have %d of them", named)
	case g.experts == 0 && (g.topK != 0 || g.groups != 0 || g.topKGroups != 0):
		return usagef("--top-k, --groups and --top-k-groups need --experts")
	case g.experts != 0 && g.topK == 0:
		return usagef("--experts needs --top-k")
	}
	return nil
}

func (g *gateFlags) check() error {
	if err := g.checkModel(); err != nil {
		return err
	}
	switch {
	case (g.biasFile == "") != (g.biasTensor == ""):
		return usagef("--bias and --bias-tensor go together")
	case g.ranks != 0 && g.placement != "":
		return usagef("want --ep or --placement, which has its own number of ranks")
	case g.ranks < 1 && g.placement == "":
		return usagef("want --ep with at least 1 rank, or --placement")
	}
	return nil
}

// gate reads what the flags name.
func (g *gateFlags) gate() (name string, gate router.Gate, dtype string, err error) {
	m, err := g.find()
	if err != nil {
		return "", router.Gate{}, "", err
	}
	gate = router.Gate{Method: m.Method, Shape: m.Shape, Scale: m.Scale}
	if g.method != "" {
		gate.Method = g.method
	}
	if g.scale != 0 {
		gate.Scale = g.scale
	}
	if g.biasFile != "" {
		if gate.Bias, err = safetensors.ReadTensor(g.biasFile, g.biasTensor); err != nil {
			return "", gate, "", fmt.Errorf("--bias: %w", err)
		}
	}
	return m.Name, gate, m.LogitsDType, withCode(exitUsage, gate.Validate())
}

func (g *gateFlags) find() (router.Model, error) {
	if g.named() {
		return g.modelFlags.find()
	}
	m := router.Model{Name: fmt.Sprintf("e%dk%d", g.experts, g.topK), Scale: 1, LogitsDType: "bf16",
		Method: router.Renormalize}
	m.Shape = router.Shape{Experts: g.experts, TopK: g.topK, Groups: g.groups, TopKGroups: g.topKGroups}
	if m.Grouped() {
		m.Name = fmt.Sprintf("e%dk%dg%d-%d", g.experts, g.topK, g.groups, g.topKGroups)
		m.Method, m.LogitsDType = router.DeepSeekV3, "f32"
	}
	return m, nil
}

// layout places the experts of the gate: as the file says, or contiguously on so
// many ranks.
func (g *gateFlags) layout(experts, ranks int) (router.Layout, error) {
	if g.placement == "" {
		l, err := router.Contiguous(experts, ranks)
		return l, withCode(exitUsage, err)
	}
	l, err := source.ReadLayout(g.placement, experts)
	if err != nil {
		return l, fmt.Errorf("--placement: %w", err)
	}
	return l, nil
}

// showEntries shows on a terminal how many entries are done; stop takes the line away.
func showEntries(stderr io.Writer) (show func(done, total int), stop func()) {
	line := progress.New(stderr, false)
	return func(done, total int) {
		line.Show(float64(done)/float64(max(1, total)), "%d of %d entries", done, total)
	}, line.Clear
}
