package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/plan"
)

// planFlags are the knobs of the plans that have some.
type planFlags struct {
	seed      uint64
	imbalance share
	hotness   share
	hot       int
	exponent  float64
	counts    string
	given     func(flag string) bool
}

// knobs says which plans know a flag.
var knobs = []struct {
	flag  string
	plans []string
}{
	{"seed", []string{"uniform", "zipf"}},
	{"imbalance", []string{"target"}},
	{"hotness", []string{"rank-hotspot", "expert-hotspot"}},
	{"hot", []string{"rank-hotspot", "expert-hotspot"}},
	{"exponent", []string{"zipf"}},
	{"counts", []string{"replay"}},
}

func (p *planFlags) bind(f *pflag.FlagSet) {
	f.Uint64Var(&p.seed, "seed", 0, "seed of the plans uniform and zipf")
	f.Var(&p.imbalance, "imbalance", "rank imbalance (max/mean − 1) of the plan target: 50% and 0.5 are the same")
	f.Var(&p.hotness, "hotness", "share of all slots that a hotspot plan adds to the hot rank or expert")
	f.IntVar(&p.hot, "hot", 0, "hot rank or expert of a hotspot plan")
	f.Float64Var(&p.exponent, "exponent", 0, "exponent of the plan zipf; 0: balanced")
	f.StringVar(&p.counts, "counts", "", "JSON `FILE` with slots per expert, [12,0,7], for the plan replay")
	p.given = f.Changed
}

// check holds the knobs against the plans they are for. A knob that no plan
// knows would be ignored silently.
func (p *planFlags) check(flag string, plans ...string) error {
	if len(plans) == 0 {
		return usagef("%s: want one or several of %s, have none", flag, strings.Join(plan.Names(), ", "))
	}
	for _, name := range plans {
		if !slices.Contains(plan.Names(), name) {
			return usagef("%s: want %s, have %q", flag, strings.Join(plan.Names(), ", "), name)
		}
	}
	for _, k := range knobs {
		known := func(plan string) bool { return slices.Contains(k.plans, plan) }
		if p.given(k.flag) && !slices.ContainsFunc(plans, known) {
			return usagef("--%s is for %s %s, have %s", k.flag, flag, strings.Join(k.plans, " or "), strings.Join(plans, ", "))
		}
	}
	if slices.Contains(plans, "replay") && p.counts == "" {
		return usagef("%s replay needs --counts", flag)
	}
	return nil
}

// options reads what the flags name.
func (p *planFlags) options() (plan.Options, error) {
	o := plan.Options{
		Seed: p.seed, Imbalance: p.imbalance.fraction, Hotness: p.hotness.fraction, Hot: p.hot, Exponent: p.exponent,
	}
	if p.counts == "" {
		return o, nil
	}
	text, err := os.ReadFile(p.counts)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(text, &o.Counts); err != nil {
		return o, &input.Error{File: p.counts, Expected: "a JSON list of slots per expert", Err: err}
	}
	return o, nil
}
