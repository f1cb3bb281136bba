package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
)

func benchCmd() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench [flags] -- COMMAND…",
		Short: "paired campaign: throughput gain of balanced routing",
		Long: `bench measures the throughput gain of balanced routing. It launches a benchmark
command alternately with the learned router (normal arm) and with the balanced router
(perfect arm), and reports the gain, its confidence interval, and whether the gain
exceeds --threshold. The unit of replication is a launch, not a request or a step.

COMMAND is any program with a known report (trtllm-bench, serving clients of
TensorRT-LLM, vLLM and SGLang, AIPerf, the built-in workload, …) or with a number that
--metric NAME=REGEX can read. Its words may contain {arm}, {launch}, {pair} and {out},
a new folder per launch. --treatment selects the environment variables that set the
arm. Options that pass them on are added to mpirun, srun and docker.

  moebalance bench --same data.jsonl -- trtllm-bench --model M throughput --dataset data.jsonl
  moebalance bench -- mpirun -n 8 trtllm-llmapi-launch trtllm-bench …
  moebalance bench --server 'trtllm-serve M' --ready http://localhost:8000/health \
      --client 'python client.py --save {out}/r.json' --result {out}/r.json

The launch order is drawn and stored before the first launch. The campaign
folder keeps campaign.sqlite and the raw output of every launch. 'bench --resume DIR'
continues after an interruption or a crash; for a finished campaign it prints the
result again. --until-decided checks the interval at several numbers of pairs, each
with an error level of (1−confidence)/looks, and stops when the interval excludes the
threshold; --pairs is the maximum. --profile adds one pair under nsys after the timed
pairs.

The verdict is invalid (exit 4) unless every rank is proved balanced in the perfect
arm and not balanced in the normal arm, and nothing else that was recorded differs.
Measured proof is expert loads (--counts, or loads in the report), or the traces of
--profile: expert compute even over ranks in the perfect arm and uneven in the normal arm.
Claimed proof is a statement of the report or a log line of every rank (--proof; the line
of TensorRT-LLM is built in; vLLM and SGLang print none): the verdict then says 'balance
claimed', and --require-proof measured makes it exit 4. Where the number of ranks is
unknown, say --ranks N. A campaign with an invalid first pair stops unless --keep-going
is set.

Iteration logs (print_iter_log on stdout, or an --iteration_log in {out}) stay in the
launch folders. 'moebalance compare' removes warm-up and matches steps by batch shape.

The gain is the ratio perfect/normal per pair, on the log scale: the mean of the two
orders' means with Student's t interval, which takes out what running second costs. The
signed-rank interval stands beside it. A 95 % interval needs at least 6 pairs.`,
		Example: `  moebalance bench --pairs 6 -- moebalance workload
  moebalance bench --until-decided --threshold 5% -- moebalance workload --skew 0.5
  moebalance bench --pairs 6 --aa-pairs 1 --format json -- moebalance workload --steps 4`,
		Annotations: map[string]string{target.RunsCommand: ""},
		Args:        cobra.ArbitraryArgs,
		RunE:        func(c *cobra.Command, words []string) error { return o.run(c, words) },
	}
	o.bind(c)
	c.AddCommand(datasetCmd())
	return c
}

// run starts or resumes a campaign, sees it through and writes its result.
func (o *benchOptions) run(c *cobra.Command, words []string) error {
	if err := o.check(c, words); err != nil {
		return err
	}
	campaign, err := o.open(words, c.ErrOrStderr())
	if err != nil {
		return err
	}
	runErr := o.runCampaign(c.Context(), campaign, c.ErrOrStderr())
	if runErr != nil && !errors.Is(runErr, errNotComparable) {
		return o.stopped(campaign, runErr)
	}
	result, err := source.Judge(c.Context(), campaign, defaultThreshold, target.WriteOwn)
	if err != nil {
		return o.stopped(campaign, err)
	}
	if err := campaign.Close(); err != nil {
		return err
	}
	if err := o.out.write(c, render.Campaign(result)); err != nil {
		return err
	}
	return o.gates(result)
}

// gates turns the result into the exit code that was asked for.
func (o *benchOptions) gates(r source.Campaign) error {
	switch {
	case r.Verdict == gain.Invalid:
		return withCode(exitNotComparable, fmt.Errorf("bench: invalid: %s", strings.Join(r.Reasons, "; ")))
	case o.lacksProof(r.Result):
		return withCode(exitNotComparable, errors.New("bench: --require-proof measured: balance is claimed, not measured: add --counts or --profile"))
	case o.failAbove.given && r.Gain.Low.Float64() > o.failAbove.fraction:
		return withCode(exitGate, fmt.Errorf("bench: gain above %s: %s", quantity.Percent(o.failAbove.fraction), r.Reasons[0]))
	case o.failAbove.given && !r.Gain.Low.Defined():
		return withCode(exitInconclusive, fmt.Errorf("bench: --fail-above: the gain has no interval: %s", strings.Join(r.Reasons, "; ")))
	case o.requireVerdict && r.Verdict == gain.Inconclusive:
		return withCode(exitInconclusive, fmt.Errorf("bench: inconclusive: %s", strings.Join(r.Reasons, "; ")))
	}
	return nil
}
