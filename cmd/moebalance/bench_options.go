package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
)

// benchOptions are the flags of bench: those that are the campaign's own as they
// are, and those that stand for something else in other words.
type benchOptions struct {
	bench.Spec

	treatment      string
	proof          string
	perfectCommand string
	server, client string
	metrics        []string
	workTolerance  share
	threshold      share
	profile        bool
	windows        string

	keepGoing      bool
	campaign       target.Folder
	madeFolder     bool // for this campaign
	resume         string
	requireVerdict bool
	failAbove      share
	quiet          bool
	out            resultFlags
}

func (o *benchOptions) bind(c *cobra.Command) {
	o.threshold = share{fraction: gain.DefaultThreshold}
	o.workTolerance = share{fraction: gain.DefaultTolerance}
	f := c.Flags()
	f.IntVar(&o.Design.Pairs, "pairs", 6, "pairs of launches; with --until-decided the most (then 24 unless given)")
	f.BoolVar(&o.Design.UntilDecided, "until-decided", false, "stop as soon as a look at the pairs decides")
	f.IntVar(&o.Design.FloorPairs, "aa-pairs", 0, "further pairs of two normal launches, which show the noise")
	f.IntVar(&o.Design.WarmUps, "warm-up", 0, "launches of each arm before the first pair, not counted")
	f.StringVar((*string)(&o.Design.Order), "order", string(bench.ABBA), "which arm goes first: abba (blocks of two pairs) or random (within pairs)")
	f.Uint64Var(&o.Design.Seed, "seed", 1, "of the order")

	f.StringVar(&o.treatment, "treatment", "trtllm", "how the arms differ: trtllm, vllm, sglang or env:NAME=VALUE")
	f.StringVar(&o.proof, "proof", "", "a line matching this `REGEX` proves balance; its group (?P<rank>…) is the rank")
	f.StringVar(&o.Counts, "counts", "", "expert statistics that every launch records at this `PATH`, with {out}: they prove how it was routed")
	f.IntVar(&o.Ranks, "ranks", 0, "how many ranks must prove their arm; 0 for those that the report names, else those seen")
	f.StringVar(&o.perfectCommand, "perfect-command", "", "another `COMMAND` for the perfect arm, as one quoted line")
	f.StringVar(&o.server, "server", "", "start this `COMMAND` first, and end it after the client")
	f.StringVar(&o.Command.Ready, "ready", "", "the server is ready once this `URL` answers 2xx")
	f.DurationVar(&o.Command.ReadyTimeout, "ready-timeout", 30*time.Minute, "how long to wait for that")
	f.StringVar(&o.client, "client", "", "the measured `COMMAND` beside --server, instead of one after --")

	f.StringArrayVar(&o.metrics, "metric", nil, "the `NAME` to compare, or NAME[:UNIT[:higher|lower]]=REGEX or =$.json.path to read one")
	f.StringVar(&o.Output, "result", "", "read the report from this `FILE`, with {out} in its path, instead of stdout")
	f.StringArrayVar(&o.Same, "same", nil, "a `FILE` (data, configuration) that must stay the same; may be repeated")
	f.Var(&o.workTolerance, "work-tolerance", "difference in requests and tokens allowed within a pair")
	f.Var(&o.threshold, "threshold", "a gain above this counts as significant: 10% and 0.1 are the same")
	f.Float64Var(&o.Confidence, "confidence", gain.DefaultConfidence, "of the interval, a fraction")

	f.DurationVar(&o.Timeout, "timeout", 0, "end a launch that takes longer, and count it as failed; 0 for no limit")
	f.DurationVar(&o.CoolDown, "cool-down", 0, "wait between launches")
	f.IntVar(&o.Retries, "retries", 0, "further attempts at a launch that failed")
	f.BoolVar(&o.keepGoing, "keep-going", false, "go on even if the first pair shows that the arms cannot be compared")

	f.BoolVar(&o.profile, "profile", false, "after the timed pairs, one pair under nsys, which is never timed")
	f.StringVar(&o.windows, "profile-iterations", "", "iterations that the profiled pair records, `A-B`; default the whole run")

	o.campaign.Store = campaignStore
	o.campaign.Bind(c, "campaign", "keep the campaign in this new `DIR` (default moebalance-bench-DATE-TIME)")
	f.StringVar(&o.resume, "resume", "", "go on with the campaign in this `DIR`, or show its result")
	f.BoolVar(&o.requireVerdict, "require-verdict", false, "exit 5 when the result is inconclusive")
	f.Var(&o.failAbove, "fail-above", "exit 3 when the whole interval of the gain lies above this")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no lines about launches on stderr")
	o.out.bind(c)
	var orders []string
	for _, order := range bench.Orders {
		orders = append(orders, string(order))
	}
	_ = c.RegisterFlagCompletionFunc("order", cobra.FixedCompletions(orders, cobra.ShellCompDirectiveNoFileComp))
}

// whileResuming are the flags that mean something beside --resume: the rest is
// the campaign's own.
var whileResuming = map[string]bool{
	"resume": true, "require-verdict": true, "fail-above": true, "quiet": true, "keep-going": true,
	"format": true, "table": true, "output": true, "force": true,
}

func (o *benchOptions) check(c *cobra.Command, words []string) error {
	if o.resume != "" {
		var idle []string
		if len(words) > 0 {
			idle = append(idle, "the command")
		}
		c.Flags().Visit(func(f *pflag.Flag) {
			if !whileResuming[f.Name] {
				idle = append(idle, "--"+f.Name)
			}
		})
		if len(idle) > 0 {
			return usagef("bench --resume goes on with what the campaign was made with: leave out %s", strings.Join(idle, ", "))
		}
		return o.checkOutput()
	}
	if o.Design.UntilDecided && !c.Flags().Changed("pairs") {
		o.Design.Pairs = 24
	}
	switch {
	case len(words) == 0 && o.client == "":
		return usagef("bench: want a command after --, such as 'moebalance bench -- moebalance workload'; see 'moebalance bench --help'")
	case len(words) > 0 && o.client != "":
		return usagef("bench: want the measured command after -- or as --client, not both")
	case (o.server == "") != (o.Command.Ready == ""):
		return usagef("bench: --server and --ready belong together")
	case o.windows != "" && !o.profile:
		return usagef("bench: --profile-iterations goes with --profile")
	case strings.Contains(o.windows, ","):
		return usagef("bench: --profile-iterations %s: want one window, such as 100-150, because a rank's trace is one report", o.windows)
	case o.client != "" && o.server == "":
		return usagef("bench: --client goes beside --server; a command alone goes after --")
	}
	return o.checkOutput()
}

// checkOutput finds before hours of launches what the result could not be
// written as.
func (o *benchOptions) checkOutput() error {
	if o.out.table != "" && !slices.Contains(render.CampaignTables, o.out.table) {
		return usagef("bench: --table: no table %q in a result: want one of %s", o.out.table, strings.Join(render.CampaignTables, ", "))
	}
	return o.out.check()
}

// complete fills in what flags say in other words, and returns a note on what they
// ask for and do not get.
func (o *benchOptions) complete(words []string) (note string, err error) {
	o.Command.Normal = words
	o.Threshold, o.WorkTolerance = o.threshold.fraction, o.workTolerance.fraction
	for _, line := range []struct {
		flag, text string
		into       *[]string
	}{{"client", o.client, &o.Command.Normal}, {"server", o.server, &o.Command.Server}, {"perfect-command", o.perfectCommand, &o.Command.Perfect}} {
		if line.text == "" {
			continue
		}
		if *line.into, err = launch.Words(line.text); err != nil {
			return "", usagef("--%s: %w", line.flag, err)
		}
	}
	for _, m := range o.metrics {
		name, rule, err := metrics.ParseWanted(m)
		if err != nil {
			return "", withCode(exitUsage, fmt.Errorf("bench: --metric: %w", err))
		}
		if rule != nil {
			o.Custom = append(o.Custom, m)
		}
		if o.Metric == "" {
			o.Metric = name
		}
	}
	if o.Folder, err = os.Getwd(); err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	if o.Treatment, err = bench.ParseTreatment(o.treatment); err != nil {
		return "", withCode(exitUsage, fmt.Errorf("bench: --treatment: %w", err))
	}
	if o.proof != "" {
		o.Treatment.Line = o.proof
	}
	return o.addProfile()
}

// addProfile adds the profiled pair, or returns a note on why there is none.
func (o *benchOptions) addProfile() (note string, err error) {
	if !o.profile {
		return "", nil
	}
	profile := launch.Profile{Windows: o.windows, GraphTrace: "node", Rank: -1}
	if err := profile.Check(); err != nil {
		return "", withCode(exitUsage, fmt.Errorf("bench: --profile-iterations: %w", err))
	}
	if profile.Nsys, err = exec.LookPath("nsys"); err != nil {
		return "no profiled pair: nsys is not on the path; install Nsight Systems, or leave out --profile", nil
	}
	o.Design.Profiled, o.Profile = true, &profile
	return "", nil
}
