package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

type generateOptions struct {
	gateFlags
	Ranks  int                       `flag:"ep"`
	Cache  target.Folder             `flag:"cache"`
	Tokens flags.Value[[]int]        `flag:"tokens"`
	DType  flags.Value[logits.DType] `flag:"dtype"`
	Plan   string                    `flag:"plan"`
	planning
	resultFlags
}

func logitsGenerateCmd() *cobra.Command {
	o := generateOptions{gateFlags: newGate(), Tokens: flags.Numbers(""), DType: flags.Read(logits.ParseDType, ""),
		Plan: plan.Names()[0], planning: newPlanning(), resultFlags: newResult()}
	c := verb("logits-generate", argCount(0, 0, "flags only"), &o, o.run)
	c.Flags().Lookup("plan").Usage += ": " + strings.Join(plan.Names(), ", ")
	return tabled(c, "entries")
}

// check finds bad flags, and turns the plan into one that the cache knows. follow is the file
// with the counts that experts are drawn by.
func (o *generateOptions) check(c *cobra.Command) (follow string, err error) {
	kind, value, drawn := strings.Cut(o.Plan, ":")
	switch {
	case drawn && len(o.Tokens.Is) > 0:
		return "", usagef("--plan %s serves any number of tokens: remove --tokens", o.Plan)
	case kind == "target" && drawn:
		most, err := strconv.ParseFloat(value, 64)
		if err != nil || !(most >= 1) {
			return "", usagef("--plan target: want a max/mean over ranks of at least 1, have %q", value)
		}
		o.Plan = plan.Target(most)
	case kind == "recorded" && drawn:
		follow = value
	default:
		if err := o.planning.check(c, "--plan", plan.Names(), o.Plan); err != nil {
			return "", err
		}
	}
	switch {
	case drawn || len(o.Tokens.Is) == 0 && plan.AnyTokens(o.Plan):
		o.Tokens.Is = []int{logits.AnyTokens}
	case len(o.Tokens.Is) == 0:
		o.Tokens.Is = logits.CommonTokens()
	default:
		err = checkTokens(o.Tokens.Is, logits.MaxTokens)
	}
	switch {
	case err != nil:
		return "", err
	case o.Cache.Path == "":
		return "", usagef("want --cache, the folder to keep entries in")
	case o.Ranks != 0 && o.Placement != "":
		return "", usagef("want --ep or --placement, which has its own number of ranks")
	case o.Ranks < 1 && o.Placement == "" && o.Model != "":
		return "", usagef("want --ep with at least 1 rank, or --placement")
	}
	return follow, nil
}

func (o *generateOptions) run(c *cobra.Command, _ []string) error {
	follow, err := o.check(c)
	if err != nil {
		return err
	}
	spec, err := o.spec()
	if err != nil {
		return err
	}
	cache, err := logits.Open(o.Cache.Path, spec)
	if err != nil {
		return err
	}
	if follow != "" {
		text, err := input.ReadFile(follow, mostCounts)
		if err != nil {
			return err
		}
		if o.Plan, err = cache.Follow(text); err != nil {
			return err
		}
	}
	show, stop := showEntries(c.ErrOrStderr())
	defer stop()
	list, err := cache.Fill(c.Context(), o.Plan, slices.Compact(slices.Sorted(slices.Values(o.Tokens.Is))), show)
	if errors.Is(err, context.Canceled) {
		return errors.New("logits generate: interrupted; run it again to continue")
	}
	if err != nil {
		return err
	}
	return o.write(c, render.GeneratedEntries(o.Cache.Path, cache.Spec(), list))
}

// mostCounts is the most bytes of a file of recorded counts.
const mostCounts = 1 << 24

// spec is the cache that the flags describe.
func (o *generateOptions) spec() (logits.Spec, error) {
	m, gate, err := o.gate()
	if err != nil {
		return logits.Spec{}, err
	}
	layout, err := o.layout(gate.Shape.Experts, o.Ranks)
	dtype := logits.Float32
	if m.LogitsDType == "bf16" {
		dtype = logits.BFloat16
	}
	return logits.Spec{Model: m.Name, Gate: gate, Layout: layout, Mode: o.Mode.Is, Seed: o.Seed,
		DType: cmp.Or(o.DType.Is, dtype)}, err
}
