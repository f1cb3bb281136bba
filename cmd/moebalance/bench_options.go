package main

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
)

// benchOptions are the flags of bench, and the campaign that they describe.
type benchOptions struct {
	Treatment bench.Treatment `flag:"treatment" preset:"trtllm"`
	Server    words           `flag:"server"`
	Client    words           `flag:"client"`
	Ready     string          `flag:"ready"`
	Points    string          `flag:"points"`
	Arms      []string        `flag:"arm"`

	Launches int           `flag:"launches" preset:"5"`
	Pairs    int           `flag:"pairs" preset:"8"`
	Seed     uint64        `flag:"seed"`
	Timeout  time.Duration `flag:"timeout"`

	Proof     string      `flag:"proof"`
	Counts    string      `flag:"counts"`
	Ranks     int         `flag:"ranks"`
	Metrics   []string    `flag:"metric"`
	Output    string      `flag:"result"`
	Threshold flags.Share `flag:"threshold" preset:"10%"`

	Campaign target.Folder `flag:"campaign"`
	Resume   string        `flag:"resume"`
	gainGates
	resultFlags

	spec bench.Spec
}

// whileResuming are the flags that --resume can be combined with. The campaign has
// recorded the rest.
var whileResuming = append([]string{"resume", "require-verdict", "fail-above"}, outputFlags...)

// ofDesign are the flags that a next step may choose anew.
var ofDesign = []string{"treatment", "launches", "pairs", "seed", "campaign"}

// check finds bad flags before hours of launches, and describes the campaign to begin.
func (o *benchOptions) check(c *cobra.Command, words []string) error {
	if o.Resume != "" {
		return o.checkResume(c, words)
	}
	server, client := o.Server != nil, o.Client != nil
	switch {
	case len(words) == 0 && !client:
		return usagef("want a command after --, such as 'moebalance bench -- moebalance workload'; see 'moebalance " +
			"bench --help'")
	case len(words) > 0 && client:
		return usagef("want the measured command after -- or as --client, not both")
	case client && !server:
		return usagef("--client needs --server; a command alone goes after --")
	}
	return o.describe(c, words)
}

// checkResume refuses what a campaign to resume has recorded.
func (o *benchOptions) checkResume(c *cobra.Command, words []string) error {
	idle := flags.Given(c, whileResuming...)
	if len(words) > 0 {
		idle = append([]string{"the command"}, idle...)
	}
	if len(idle) > 0 {
		return usagef("--resume uses the recorded settings of the campaign: remove %s", strings.Join(idle, ", "))
	}
	return nil
}

// describe turns the flags into the specification of a campaign.
func (o *benchOptions) describe(c *cobra.Command, words []string) (err error) {
	if !c.Flags().Changed("seed") {
		o.Seed = uint64(rand.Uint32()) // any JSON reader can hold it
	}
	o.spec = bench.Spec{
		Design:    bench.Design{Pairs: o.Pairs, Seed: o.Seed},
		Treatment: o.Treatment,
		Command:   bench.Command{Normal: slices.Concat(words, o.Client), Server: o.Server, Ready: o.Ready},
		Output:    o.Output, Counts: o.Counts, Ranks: o.Ranks,
		Timeout: o.Timeout, Typed: flags.Typed(c, slices.Concat(ofDesign, whileResuming)...),
	}
	if len(words) > 0 {
		o.spec.Typed = slices.Concat(o.spec.Typed, []string{"--"}, words)
	}
	if err := cmp.Or(o.readArms(c), o.chooseDesign(c), o.readMetrics()); err != nil {
		return err
	}
	if o.Points != "" {
		at, err := points.Parse(o.Points)
		if err != nil {
			return usagef("--%w", err)
		}
		o.spec.Points = &at
	}
	if o.Proof != "" {
		o.spec.Treatment.Line = o.Proof
	}
	if o.spec.Threshold = float64(o.Threshold); !c.Flags().Changed("timeout") {
		o.spec.Timeout = o.spec.DefaultTimeout()
	}
	if o.spec.Folder, err = os.Getwd(); err == nil && o.needsHook(words) {
		err = checkHookCache()
	}
	return err
}

// readArms takes the arms apart.
func (o *benchOptions) readArms(c *cobra.Command) error {
	for _, text := range o.Arms {
		a, err := bench.ParseArm(text)
		if err != nil {
			return usagef("--arm: %w", err)
		}
		o.spec.Arms = append(o.spec.Arms, a)
	}
	o.spec.Builds = bench.BuildsOf(o.spec.Arms)
	given := c.Flags().Changed
	switch {
	case !o.spec.Builds.Named():
		return nil
	case given("treatment") || given("proof"):
		return usagef("--arm %s and --arm %s are two builds, without a treatment and without proof: remove "+
			"--treatment and --proof, or say what sets both apart", o.spec.Builds[0], o.spec.Builds[1])
	case !given("threshold"):
		o.Threshold = 0
	}
	o.spec.Treatment = bench.Treatment{}
	return nil
}

// chooseDesign chooses launches that hold all arms where they are asked for, and where the
// hook follows a server's client and nothing needs a launch of its own.
func (o *benchOptions) chooseDesign(c *cobra.Command) error {
	given := c.Flags().Changed
	asked := given("launches") || o.spec.Routers()
	switch {
	case asked && given("pairs"):
		return usagef("--pairs are launches of one arm each, --launches hold all arms: want one of them")
	case asked && !given("treatment") && !o.spec.Builds.Named():
		o.spec.Treatment, _ = bench.ParseTreatment("hook")
	}
	if asked && o.Launches < 1 {
		return usagef("--launches %d: want 1 or more", o.Launches)
	}
	within := o.spec
	within.Design.Launches, within.Design.Pairs = o.Launches, 0
	switch err := within.CheckWithin(); {
	case asked && err != nil:
		return usage(err)
	case asked || o.Client != nil && !given("pairs") && err == nil:
		o.spec.Design = within.Design
	}
	return nil
}

// needsHook reports whether the engine is started with the hook for PyTorch.
func (o *benchOptions) needsHook(words []string) bool {
	engine := slices.Concat(o.spec.Command.Server, words)
	return o.spec.Treatment.Name == "hook" && (len(engine) == 0 || engine[0] != launch.OwnName)
}

// readMetrics takes the wanted metrics apart.
func (o *benchOptions) readMetrics() error {
	for _, m := range o.Metrics {
		name, rule, err := metrics.ParseWanted(m)
		if err != nil {
			return usagef("--metric: %w", err)
		}
		if rule != nil {
			o.spec.Custom = append(o.spec.Custom, m)
		}
		o.spec.Metric = cmp.Or(o.spec.Metric, name)
	}
	return nil
}
