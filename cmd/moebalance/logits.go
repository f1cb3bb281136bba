package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/plan"
)

// verifyOptions and listOptions are of verbs that read a cache folder.
type (
	verifyOptions struct{ resultFlags }
	listOptions   struct{ resultFlags }
)

func (o *verifyOptions) answer(c call) (d document, err error) {
	v, err := readCache(c, c.args[0], logits.Verify)
	if err != nil {
		return d, err
	}
	return render.VerifiedCache(c.args[0], v), withCode(exitGate, v.Err())
}

func (o *listOptions) answer(c call) (d document, err error) {
	v, err := readCache(c, c.args[0], logits.List)
	if err != nil {
		return d, err
	}
	return render.ListedCache(c.args[0], v), nil
}

func readCache(c call, dir string, read func(context.Context, string,
	func(done, total int)) (logits.Verification, error)) (logits.Verification, error) {
	line := c.progress()
	defer line.Clear()
	return read(c.Context(), dir, line.Entries)
}

// planFlags name a router, the ranks that hold its experts, and what is planned for them.
type planFlags struct {
	Model     string        `flag:"model"`
	Method    router.Method `flag:"method"`
	Placement string        `flag:"placement"`
	Ranks     []int         `flag:"ep"`
	Tokens    []int         `flag:"tokens"`
	Mode      router.Mode   `flag:"mode" preset:"dep"`
	Seed      uint64        `flag:"seed"`
}

// read reads the router, with its model, and the layout of its experts on each number of ranks: contiguous, or as the
// file says.
func (p *planFlags) read() (m router.Model, gate router.Gate, layouts []router.Layout, err error) {
	switch {
	case p.Model == "":
		return m, gate, nil, usagef("want --model: a preset, a config.json, or experts and top-k such as e256k8")
	case p.Placement != "" && len(p.Ranks) > 0:
		return m, gate, nil, usagef("want --ep or --placement, which has its own number of ranks")
	case p.Placement == "" && len(p.Ranks) == 0:
		return m, gate, nil, usagef("want --ep with at least 1 rank, or --placement")
	}
	if m, err = router.ReadModel(p.Model, p.Method); err != nil {
		return m, gate, nil, err
	}
	gate = router.Gate{Method: cmp.Or(p.Method, m.Method), Shape: m.Shape, Scale: m.Scale}
	layouts = make([]router.Layout, max(1, len(p.Ranks)))
	if err = usage(gate.Validate()); err == nil && p.Placement != "" {
		if layouts[0], err = router.ReadLayout(p.Placement, m.Experts); err != nil {
			err = fmt.Errorf("--placement: %w", err)
		}
	}
	for i, n := range p.Ranks {
		if err == nil {
			layouts[i], err = router.Contiguous(m.Experts, n)
			err = usage(err)
		}
	}
	return m, gate, layouts, err
}

// check finds too many tokens, and of the plans that a flag names ones that are not known, and a seed that none uses.
func (p *planFlags) check(c call, most int, flag string, known []string, plans ...string) error {
	for _, n := range p.Tokens {
		if n < 1 || n > most {
			return usagef("--tokens: want 1 to %d tokens per rank, have %d", most, n)
		}
	}
	for _, name := range plans {
		if !slices.Contains(known, name) {
			return usagef("%s: want %s, have %q%s", flag, strings.Join(known, ", "), name, router.Near(name, known))
		}
	}
	if c.given("seed") && len(plans) > 0 && !slices.ContainsFunc(plans, plan.Seeded) {
		seeded := slices.DeleteFunc(slices.Clone(known), func(n string) bool { return !plan.Seeded(n) })
		return usagef("--seed is for %s %s, have %s", flag, strings.Join(seeded, ", "), strings.Join(plans, ", "))
	}
	return nil
}
