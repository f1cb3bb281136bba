package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

func logitsCmd() *cobra.Command {
	c := command("logits", nil, needsVerb)
	c.AddCommand(logitsGenerateCmd(), logitsVerifyCmd(), logitsListCmd(), logitsPlansCmd(), logitsSchemaCmd())
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

func logitsVerifyCmd() *cobra.Command {
	return cacheCmd(command("logits-verify", nil, nil), logits.Verify, render.VerifiedCache, logits.Verification.Err)
}

func logitsListCmd() *cobra.Command {
	return cacheCmd(command("logits-list", nil, nil), logits.List, render.ListedCache,
		func(logits.Verification) error { return nil })
}

func logitsSchemaCmd() *cobra.Command {
	return command("logits-schema", argCount(0, 0, "no argument"), func(c *cobra.Command, _ []string) error {
		_, err := io.WriteString(c.OutOrStdout(), logits.Schema)
		return err
	})
}

// cacheCmd is a verb that reads a cache folder, shows it and judges it.
func cacheCmd(c *cobra.Command, read func(context.Context, string, func(done, total int)) (logits.Verification, error),
	show func(dir string, v logits.Verification) output.Document,
	judge func(logits.Verification) error) *cobra.Command {
	var out resultFlags
	out.bind(c, func() []string { return show("", logits.Verification{}).TableNames() })
	c.Args = argCount(1, 1, "one cache folder")
	c.RunE = func(c *cobra.Command, args []string) error {
		progress, stop := showEntries(c.ErrOrStderr())
		v, err := read(c.Context(), args[0], progress)
		stop()
		if err != nil {
			return err
		}
		return cmp.Or(out.write(c, show(args[0], v)), withCode(exitGate, judge(v)))
	}
	return c
}

func bindSeed(f *pflag.FlagSet, seed *uint64) {
	f.Uint64Var(seed, "seed", 0, "seed of plans that draw random numbers")
}

// checkPlans finds names that are not known, and a seed that no plan uses.
func checkPlans(f *pflag.FlagSet, flag string, known []string, plans ...string) error {
	if len(plans) == 0 {
		return usagef("%s: want one or several of %s, have none", flag, strings.Join(known, ", "))
	}
	for _, name := range plans {
		if !slices.Contains(known, name) {
			return usagef("%s: want %s, have %q%s", flag, strings.Join(known, ", "), name, router.Near(name, known))
		}
	}
	if seeded := slices.DeleteFunc(slices.Clone(known), func(n string) bool { return !plan.Seeded(n) }); f.
		Changed("seed") && !slices.ContainsFunc(plans, plan.Seeded) {
		return usagef("--seed is for %s %s, have %s", flag, strings.Join(seeded, ", "), strings.Join(plans, ", "))
	}
	return nil
}

func bindTokens(c *cobra.Command, tokens *[]int, preset string) {
	flags.Numbers(c, tokens, "tokens", preset, "batch sizes in tokens per rank")
}

// checkTokens compares the numbers of tokens with the most a rank may have.
func checkTokens(tokens []int, most int) error {
	for _, n := range tokens {
		if n < 1 || n > most {
			return usagef("--tokens: want 1 to %d tokens per rank, have %d", most, n)
		}
	}
	return nil
}
