package main

import (
	"cmp"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
)

// cacheOptions are the options of verify and list, which read a cache folder.
type cacheOptions struct{ resultFlags }

func (o *cacheOptions) answer(c call) (d document, err error) {
	read, line, list := logits.Verify, c.progress(), c.Name() == "list"
	if list {
		read = logits.List
	}
	defer line.Clear()
	switch v, err := read(c.Context(), c.args[0], line.Entries); {
	case err != nil:
		return d, source.Meant(c.args[0], err, source.Caches)
	case list:
		return render.ListedCache(c.args[0], v), nil
	default:
		return render.VerifiedCache(c.args[0], v), withCode(exitGate, v.Err())
	}
}

type generateOptions struct {
	planFlags
	Cache target.Folder `flag:"cache"`
	DType logits.DType  `flag:"dtype"`
	Plan  string        `flag:"plan" preset:"diagonal"`

	Target string `flag:"target"`
	resultFlags
}

func (o *generateOptions) answer(c call) (d document, err error) {
	if c.given("target") && c.given("plan") {
		return d, usagef("want --plan or --target, not both")
	} else if c.given("target") {
		o.Plan = "target:" + o.Target
	}
	m, gate, layout, err := o.read()
	switch {
	case o.Cache.Path == "":
		return d, usagef("want --cache, the folder to keep entries in")
	case err != nil:
		return d, err
	}
	cache, err := logits.Open(o.Cache.Path, logits.Spec{Model: m.Name, Gate: gate, Layout: layout, Mode: o.Mode,
		Seed: o.Seed, DType: cmp.Or(o.DType, logits.DTypeOf(m))})
	if err != nil {
		return d, err
	}
	name, err := cache.Plan(o.Plan)
	if err != nil {
		return d, err
	}
	if len(o.Tokens) == 0 {
		o.Tokens = []int{logits.AnyTokens}
	}
	line := c.progress()
	defer line.Clear()
	list, err := cache.Fill(c.Context(), name, o.Tokens, line.Entries)
	if err != nil {
		return d, err
	}
	return render.GeneratedEntries(o.Cache.Path, cache.Spec(), list), nil
}
