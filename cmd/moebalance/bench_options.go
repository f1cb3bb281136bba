package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// benchOptions are the flags of bench: those that are the campaign's own as they
// are, and those that stand for something else in other words.
type benchOptions struct {
	bench.Spec

	points        string
	armWords      []string
	model         modelFlags // of the points
	proof         string
	client        []string
	metrics       []string
	workTolerance flags.Share
	threshold     flags.Share
	confidence    flags.Share

	launches       int
	keepGoing      bool
	campaign       target.Folder
	madeFolder     bool // for this campaign
	resume         string
	requireVerdict bool
	requireProof   gain.Grade
	rejudged       []string // flags that judge a resumed campaign anew
	failAbove      flags.Share
	grace          time.Duration
	quiet          bool
	out            resultFlags
}

func (o *benchOptions) bind(c *cobra.Command) {
	o.bindRun(c)
	o.bindJudging(c)

	f := c.Flags()
	o.campaign.Keeps = true
	o.campaign.Bind(c, "campaign", "", "new campaign `DIR` (default moebalance-bench-DATE-TIME)")
	f.StringVar(&o.resume, "resume", "", "continue the campaign in this `DIR`, or print its result")
	f.BoolVar(&o.requireVerdict, "require-verdict", false, "exit 5 if the verdict is inconclusive")
	f.Var(&o.failAbove, "fail-above", "exit 3 if the whole interval of the gain is above this")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress on stderr")
	o.out.bind(c, func() []string { return render.CampaignTables })
}

// bindRun binds what is launched, and how often.
func (o *benchOptions) bindRun(c *cobra.Command) {
	f := c.Flags()
	flags.Parsed(c, &o.Treatment, bench.ParseTreatment, "treatment", "trtllm",
		"switch of the perfect arm: trtllm, vllm, hook, sglang or env:NAME=VALUE", treatmentNames()...)
	flags.Parsed(c, &o.Command.Server, launch.Words, "server", "",
		"server `COMMAND`, started before and stopped after the client")
	flags.Parsed(c, &o.client, launch.Words, "client", "",
		"measured `COMMAND` with --server, instead of a command after --")
	f.StringVar(&o.Command.Ready, "ready", "", "`URL` that answers 2xx when the server is ready")
	f.StringVar(&o.Spec.Control, "control", "",
		"measure a server that runs already and follows this `DIR`, its MOEBALANCE_CONTROL, with --client: one launch")
	f.StringVar(&o.Reset, "reset", "", "`URL` to POST to before each run of --client, to empty the server's caches")
	f.DurationVar(&o.Command.ReadyTimeout, "ready-timeout", 30*time.Minute, "maximum wait for --ready")
	f.StringVar(&o.points, "points", "",
		"measure both arms at each load, as `NAME=A,B` or NAME=A-B: {NAME} in the command is the value")
	f.StringArrayVar(&o.armWords, "arm", nil,
		"`NAME=SPEC`, a further arm: a router such as target:1.2, or 'VARIABLE=VALUE --flag'; two, one of them a NAME alone, "+
			"are builds; repeatable")
	o.model.bind(c)
	f.Lookup("model").Usage = "model, for the tokens per active expert at each of --points: " + f.Lookup("model").Usage

	f.IntVar(&o.launches, "launches", 5, "launches that switch between the arms inside (--treatment hook)")
	f.IntVar(&o.Design.Blocks, "blocks", 2, "blocks of segments in each of --launches: ABBA, then BAAB")
	f.IntVar(&o.Design.Pairs, "pairs", 8, "pairs of launches, one per arm")
	f.IntVar(&o.Design.WarmUps, "warm-up", 0, "untimed launches of each arm before the first pair")
	f.Uint64Var(&o.Design.Seed, "seed", 0, "seed of the launch order (default drawn, and stored)")
	f.DurationVar(&o.CoolDown, "cool-down", 0, "pause between launches")

	f.DurationVar(&o.Timeout, "timeout", 0, "time limit of a launch, after which it failed; 0: none")
	f.DurationVar(&o.grace, "grace", launch.DefaultGrace, "time for a command to end after SIGINT, until SIGKILL")
	f.IntVar(&o.Retries, "retries", 0, "additional attempts at a failed launch")
	f.BoolVar(&o.keepGoing, "keep-going", false, "continue if the first pair is invalid")
}

// bindJudging binds what a launch has to prove, and how it is read and judged.
func (o *benchOptions) bindJudging(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.proof, "proof", "",
		"log line that proves balance, as `REGEX`; the groups (?P<rank>…) and (?P<ranks>…) are the rank and how many "+
			"there are")
	f.StringVar(&o.Counts, "counts", "",
		"expert statistics recorded by every launch at this `PATH` (with {out}), as proof of the routing")
	f.IntVar(&o.Ranks, "ranks", 0, "number of ranks that must prove their arm; 0: as reported, else as seen")
	flags.Choice(c, &o.requireProof, "require-proof", gain.Claimed,
		"weakest accepted proof of balance: claimed, or measured (exit 4 if it is only claimed)", gain.Claimed,
		gain.Measured)
	f.StringArrayVar(&o.Same, "same", nil, "`FILE` (data, configuration) that must not change; repeatable")
	f.StringArrayVar(&o.Accepted, "accept-difference", nil,
		"`WORD`: an option, argument or variable in which the arms may differ, too; repeatable")
	o.workTolerance = flags.Share{Fraction: gain.DefaultTolerance}
	f.Var(&o.workTolerance, "work-tolerance", "maximum difference in requests and tokens within a pair")

	f.StringArrayVar(&o.metrics, "metric", nil,
		"metric to compare: a reported `NAME`, or NAME[:UNIT[:higher|lower]]=REGEX or =$.json.path")
	flags.Complete(c, "metric", metrics.Names()...)
	f.StringVar(&o.Output, "result", "", "report `FILE` (with {out} in its path), instead of stdout")
	f.StringVar(&o.IterationLog, "iteration-log", "",
		"iteration log `FILE` (with {out} in its path), if it is not printed")
	o.threshold, o.confidence = flags.Share{Fraction: gain.DefaultThreshold}, flags.Share{Fraction: gain.DefaultConfidence}
	f.Var(&o.threshold, "threshold", "gain that counts as significant: 10% and 0.1 are the same")
	f.Var(&o.confidence, "confidence", "confidence level of the interval")
}

// treatmentNames are the treatments of engines.
func treatmentNames() (names []string) {
	for _, t := range bench.Treatments {
		names = append(names, t.Name)
	}
	return names
}

// lacksProof reports whether balance is only claimed and must be measured.
func (o *benchOptions) lacksProof(r gain.Result) bool {
	return r.Balance == gain.Claimed && o.requireProof == gain.Measured
}

// whileRejudging are the flags that judge a resumed campaign by other rules.
var whileRejudging = []string{"proof", "threshold", "metric", "ranks", "accept-difference"}

// whileResuming are the other flags that --resume can be combined with. The campaign has
// recorded the rest.
var whileResuming = map[string]bool{
	"resume": true, "require-verdict": true, "require-proof": true, "fail-above": true, "quiet": true,
	"keep-going": true, "grace": true,
	"format": true, "json": true, "table": true, "brief": true, "notes": true, "wide": true, "output": true, "force": true,
}

func (o *benchOptions) check(c *cobra.Command, words []string) error {
	if o.grace < 0 {
		return usagef("bench: --grace %v: want 0 or more", o.grace)
	}
	if o.resume != "" {
		if err := o.checkResume(c, words); err != nil {
			return err
		}
		return o.checkOutput()
	}
	if !c.Flags().Changed("seed") {
		o.Design.Seed = uint64(rand.Uint32()) // any JSON reader can hold it
	}
	switch {
	case len(words) == 0 && o.client == nil && o.Spec.Control != "":
		return usagef("bench: --control needs --client, the benchmark of the server that runs")
	case len(words) == 0 && o.client == nil:
		return usagef("bench: want a command after --, such as 'moebalance bench -- moebalance workload'; see 'moebalance " +
			"bench --help'")
	case len(words) > 0 && o.client != nil:
		return usagef("bench: want the measured command after -- or as --client, not both")
	case o.client != nil && o.Command.Server == nil && o.Spec.Control == "":
		return usagef("bench: --client needs --server; a command alone goes after --")
	case o.Command.Server != nil && o.Spec.Control != "":
		return usagef("bench: --control is for a server that runs already: remove --server")
	}
	if err := o.checkArms(c); err != nil {
		return err
	}
	if err := o.checkDesign(c, words); err != nil {
		return err
	}
	return o.checkOutput()
}

// checkResume refuses what a campaign to resume has recorded.
func (o *benchOptions) checkResume(c *cobra.Command, words []string) error {
	var idle []string
	if len(words) > 0 {
		idle = append(idle, "the command")
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case slices.Contains(whileRejudging, f.Name):
			o.rejudged = append(o.rejudged, f.Name)
		case !whileResuming[f.Name]:
			idle = append(idle, "--"+f.Name)
		}
	})
	slices.Sort(o.rejudged)
	if len(idle) > 0 {
		return usagef("bench --resume uses the recorded settings of the campaign: remove %s", strings.Join(idle, ", "))
	}
	return nil
}

// checkDesign chooses launches that hold all arms where they are asked for, and where the
// hook follows a server's client and nothing needs a launch of its own.
func (o *benchOptions) checkDesign(c *cobra.Command, words []string) error {
	given := c.Flags().Changed
	asked := given("launches") || given("blocks") || o.Spec.Control != "" || o.Spec.Routers()
	switch {
	case asked && given("pairs"):
		return usagef("bench: --pairs are launches of one arm each, --launches, --blocks and --control switch inside a " +
			"launch: want one of them")
	case asked && !given("treatment") && !o.Builds.Named():
		o.Treatment, _ = bench.ParseTreatment("hook")
	}
	if o.Spec.Control != "" {
		var err error
		if o.Spec.Control, err = filepath.Abs(o.Spec.Control); err != nil {
			return err
		}
		if !given("launches") {
			o.launches = 1
		}
	}
	if asked && o.launches < 1 {
		return usagef("bench: --launches %d: want 1 or more", o.launches)
	}
	within := o.Spec
	within.Design.Launches, within.Design.Pairs = o.launches, 0
	within.Command.Normal = slices.Concat(words, o.client)
	err := within.CheckWithin()
	switch {
	case asked && err != nil:
		return withCode(exitUsage, fmt.Errorf("bench: %w", err))
	case asked || o.client != nil && !given("pairs") && err == nil:
		o.Design = within.Design
	default:
		o.Design.Blocks = 0
	}
	if need := o.needsHook(words); need && checkHookCache() != nil {
		return checkHookCache()
	}
	return nil
}

// needsHook reports whether the engine is started with the hook for PyTorch.
func (o *benchOptions) needsHook(words []string) bool {
	engine := slices.Concat(o.Command.Server, words)
	return o.Treatment.Name == "hook" && o.Spec.Control == "" && (len(engine) == 0 || engine[0] != launch.OwnName)
}

// checkOutput finds a bad output before hours of launches.
func (o *benchOptions) checkOutput() error {
	if o.out.table != "" && !slices.Contains(render.CampaignTables, o.out.table) {
		return usagef("bench: --table: no table %q in a result: want one of %s%s", o.out.table,
			strings.Join(render.CampaignTables, ", "), router.Near(o.out.table, render.CampaignTables))
	}
	return nil
}

// complete turns flags into the campaign's specification.
func (o *benchOptions) complete(words []string) (err error) {
	o.Command.Normal = append(words, o.client...) // one of them is empty
	o.Threshold, o.WorkTolerance, o.Confidence = o.threshold.Fraction, o.workTolerance.Fraction, o.confidence.Fraction
	if err := o.readMetrics(); err != nil {
		return err
	}
	if o.Folder, err = os.Getwd(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if o.proof != "" {
		o.Treatment.Line = o.proof
	}
	return nil
}

// readMetrics takes the wanted metrics apart.
func (o *benchOptions) readMetrics() error {
	for _, m := range o.metrics {
		name, rule, err := metrics.ParseWanted(m)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("bench: --metric: %w", err))
		}
		if rule != nil {
			o.Custom = append(o.Custom, m)
		}
		if o.Metric == "" {
			o.Metric = name
		}
	}
	return nil
}
