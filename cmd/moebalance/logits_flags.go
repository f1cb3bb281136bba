package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
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

// batchFlags say how many tokens the ranks hold: the same number each, or
// unequally many, which gives the number of ranks too.
type batchFlags struct {
	tokens  []int
	unequal [][]int // tokens of each rank, by batch
	given   func(flag string) bool
}

func (b *batchFlags) bind(f *pflag.FlagSet, tokens []int) {
	bindTokens(f, &b.tokens, tokens)
	f.Func("unequal", "`TOKENS` of each rank, such as 5,0,3,7, in place of --ep and --tokens; again for further batches", b.addUnequal)
	b.given = f.Changed
}

func bindTokens(f *pflag.FlagSet, tokens *[]int, preset []int) {
	f.IntSliceVar(tokens, "tokens", preset, "batch sizes in tokens per rank, one or several numbers")
}

// check compares every number of tokens with the most a rank may have.
func (b *batchFlags) check(most int) error {
	if len(b.unequal) == 0 {
		return checkTokens("--tokens", b.tokens, most)
	}
	if b.given("ep") || b.given("tokens") {
		return usagef("--unequal is in place of --ep and --tokens")
	}
	for _, each := range b.unequal {
		if err := checkTokens("--unequal", each, most); err != nil {
			return err
		}
	}
	return nil
}

func checkTokens(flag string, tokens []int, most int) error {
	if len(tokens) == 0 || slices.Min(tokens) < 0 || slices.Max(tokens) > most {
		return usagef("%s: want 0 to %d tokens per rank, have %v", flag, most, tokens)
	}
	return nil
}

// addUnequal reads one batch. The same one again adds nothing.
func (b *batchFlags) addUnequal(text string) error {
	var each []int
	for number := range strings.SplitSeq(text, ",") {
		t, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil {
			return errors.New("want a whole number for each rank with commas between them, such as 5,0,3,7")
		}
		each = append(each, t)
	}
	if !slices.ContainsFunc(b.unequal, func(known []int) bool { return slices.Equal(known, each) }) {
		b.unequal = append(b.unequal, each)
	}
	return nil
}
