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
		Short: "paired campaign: normal and perfect launches, interleaved",
		Long: `bench launches a benchmark command again and again, alternately with the learned
router (normal arm) and with balanced routing (perfect arm), and says by how much
perfect routing is faster, how sure that is, and whether it is more than
--threshold. A launch is the unit: requests and steps within one do not count.

COMMAND is any program whose report is known (trtllm-bench, serving clients of
TensorRT-LLM, vLLM and SGLang, AIPerf, the built-in workload, …) or from which
--metric NAME=REGEX can read a number. Its words may hold {arm}, {launch}, {pair}
and {out}, a fresh folder of the launch. The arm is set in the environment, by
--treatment; options of mpirun, srun and docker that pass it on are added.

  moebalance bench --same data.jsonl -- trtllm-bench --model M throughput --dataset data.jsonl
  moebalance bench -- mpirun -n 8 trtllm-llmapi-launch trtllm-bench …
  moebalance bench --server 'trtllm-serve M' --ready http://localhost:8000/health \
      --client 'python client.py --save {out}/r.json' --result {out}/r.json

The order is drawn from --seed and stored before the first launch. Everything is
kept in the campaign folder: campaign.sqlite and the raw output of every launch.
After an interruption or a crash 'bench --resume DIR' goes on where it stopped,
and for a finished campaign shows the result again. --until-decided looks at the
pairs several times, each look with its share of the error (1−confidence)/looks,
and stops when the interval lies on one side of the threshold; --pairs is the cap.
--profile adds a pair under nsys after the timed ones and shows what its traces say.

The verdict is invalid, exit 4, unless every rank is proved to have been balanced
in the perfect arm and not in the normal one, and the arms differ in nothing else
that was recorded. Proof is what the report itself says, a line in the log
(--proof; TensorRT-LLM's is known), or recorded expert counts (--counts; vLLM and
SGLang print nothing about their switches). Where none of these speaks, the traces
of --profile do: expert work even over the ranks in the perfect arm and uneven in
the normal one. A campaign whose first pair is invalid stops there, unless
--keep-going.

Iteration logs (print_iter_log on stdout, an --iteration_log in {out}) lie in the
folders of the launches: 'moebalance compare' cuts their warm-up and matches their
steps by batch shape.

The gain is the ratio of perfect to normal per pair, on the log scale: the
Hodges–Lehmann estimate with the exact signed-rank interval. 6 pairs are the
least that can give 95 %.`,
		Example: `  moebalance bench --pairs 6 -- moebalance workload
  moebalance bench --until-decided --threshold 5% -- moebalance workload --skew 0.5
  moebalance bench --pairs 2 --aa-pairs 1 --format json -- moebalance workload --steps 4`,
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
	case o.failAbove.given && r.Gain.Low.Float64() > o.failAbove.fraction:
		return withCode(exitGate, fmt.Errorf("bench: gain above %s: %s", quantity.Percent(o.failAbove.fraction), r.Reasons[0]))
	case o.failAbove.given && !r.Gain.Low.Defined():
		return withCode(exitInconclusive, fmt.Errorf("bench: --fail-above has no interval of the gain to judge: %s", strings.Join(r.Reasons, "; ")))
	case o.requireVerdict && r.Verdict == gain.Inconclusive:
		return withCode(exitInconclusive, fmt.Errorf("bench: inconclusive: %s", strings.Join(r.Reasons, "; ")))
	}
	return nil
}
