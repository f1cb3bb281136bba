package main

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
)

// benchOptions are the flags of bench, and the campaign that they describe.
type benchOptions struct {
	bench.Spec
	Server   words            `flag:"server"`
	Client   words            `flag:"client"`
	Proof    string           `flag:"proof"`
	Metrics  []metrics.Wanted `flag:"metric"`
	Campaign target.Folder    `flag:"campaign"`
	Resume   string           `flag:"resume"`
	gainGates
	resultFlags
}

// whileResuming are the flags that --resume can be combined with. The campaign has
// recorded the rest.
var whileResuming = []string{"resume", "require-verdict", "fail-above"}

// ofDesign are the flags that a next step may choose anew.
var ofDesign = []string{"treatment", "launches", "pairs", "seed", "campaign"}

// check finds bad flags before hours of launches, and describes the campaign to begin.
func (o *benchOptions) check(c call) error {
	if o.Resume != "" {
		if len(c.args) > 0 {
			return usagef("--resume runs the command that the campaign recorded: remove it")
		}
		return c.only("--resume uses the recorded settings of the campaign", whileResuming...)
	}
	switch client := o.Client != nil; {
	case len(c.args) == 0 && !client:
		return usagef("want a command after --, such as 'moebalance bench -- moebalance workload'; see 'moebalance " +
			"bench --help'")
	case len(c.args) > 0 && client:
		return usagef("want the measured command after -- or as --client, not both")
	case client && o.Server == nil:
		return usagef("--client needs --server; a command alone goes after --")
	}
	return o.describe(c)
}

// describe turns the flags into the specification of a campaign.
func (o *benchOptions) describe(c call) (err error) {
	if !c.given("seed") {
		o.Design.Seed = uint64(rand.Uint32()) // any JSON reader can hold it
	}
	o.Command.Normal, o.Command.Server = slices.Concat(c.args, o.Client), o.Server
	if _, o.Typed = flags.Given(c.Command, slices.Concat(ofDesign, whileResuming, outputFlags)...); len(c.args) > 0 {
		o.Typed = slices.Concat(o.Typed, []string{"--"}, c.args)
	}
	if err := cmp.Or(o.nameBuilds(c), o.chooseDesign(c)); err != nil {
		return err
	}
	for _, m := range o.Metrics {
		if o.Metric = cmp.Or(o.Metric, m.Name); m.Rule != nil {
			o.Custom = append(o.Custom, m.Text)
		}
	}
	if o.Proof != "" {
		o.Treatment.Line = o.Proof
	}
	if !c.given("timeout") {
		o.Timeout = o.DefaultTimeout()
	}
	if o.Folder, err = os.Getwd(); err == nil && o.needsHook(c.args) {
		err = checkHookCache()
	}
	return err
}

// nameBuilds takes two arms that nothing sets apart as builds.
func (o *benchOptions) nameBuilds(c call) error {
	o.Builds = bench.BuildsOf(o.Arms)
	switch {
	case !o.Builds.Named():
		return nil
	case c.given("treatment") || c.given("proof"):
		return usagef("--arm %s and --arm %s are two builds, without a treatment and without proof: remove "+
			"--treatment and --proof, or say what sets both apart", o.Builds[0], o.Builds[1])
	case !c.given("threshold"):
		o.Threshold = 0
	}
	o.Treatment = bench.Treatment{}
	return nil
}

// chooseDesign chooses launches that hold all arms where they are asked for, and where the
// hook follows a server's client and nothing needs a launch of its own.
func (o *benchOptions) chooseDesign(c call) error {
	asked := c.given("launches") || o.Routers()
	switch {
	case asked && c.given("pairs"):
		return usagef("--pairs are launches of one arm each, --launches hold all arms: want one of them")
	case asked && !c.given("treatment") && !o.Builds.Named():
		o.Treatment, _ = bench.ParseTreatment("hook")
	}
	pairs := o.Design
	pairs.Launches, o.Design.Pairs = 0, 0
	switch err := o.CheckWithin(); {
	case asked && err != nil:
		return usage(err)
	case !asked && (o.Client == nil || c.given("pairs") || err != nil):
		o.Design = pairs
	}
	return nil
}

// needsHook reports whether the engine is started with the hook for PyTorch.
func (o *benchOptions) needsHook(words []string) bool {
	engine := slices.Concat(o.Command.Server, words)
	return o.Treatment.Name == "hook" && (len(engine) == 0 || engine[0] != launch.OwnName)
}
