package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/compare"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
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
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, words []string) error { return o.run(c, words) },
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
	result, err := judgeProfiled(c.Context(), campaign, true)
	if err != nil {
		return o.stopped(campaign, err)
	}
	if err := campaign.Close(); err != nil {
		return err
	}
	if err := o.out.write(c, benchDocument(result)); err != nil {
		return err
	}
	return o.gates(result)
}

// open creates the campaign of the flags, or opens the one to resume.
func (o *benchOptions) open(words []string, stderr io.Writer) (*bench.Campaign, error) {
	if o.resume != "" {
		campaign, err := bench.Resume(o.resume)
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		return campaign, nil
	}
	note, err := o.complete(words)
	if err != nil {
		return nil, err
	}
	if err := o.Spec.Check(); err != nil {
		return nil, withCode(exitUsage, fmt.Errorf("bench: %w", err))
	}
	if err := thisHost().Resolve(o.Spec); err != nil {
		return nil, withCode(exitUsage, fmt.Errorf("bench: %w", err))
	}
	for _, path := range o.Same {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("bench: a file that must stay the same: %w", err)
		}
	}
	folder := o.campaign
	if folder == "" {
		if folder, err = newFolder("moebalance-bench-" + time.Now().Format("20060102-150405")); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
	}
	campaign, err := bench.Create(folder, o.Spec, time.Now())
	switch {
	case errors.Is(err, bench.ErrExists):
		return nil, withCode(exitUsage, fmt.Errorf("bench: %w; '%s' goes on with it", err, resumeLine(folder)))
	case err != nil:
		return nil, fmt.Errorf("bench: %w", err)
	case note != "":
		fmt.Fprintln(stderr, "moebalance: "+note)
	}
	return campaign, nil
}

// newFolder makes a folder of that name, or of the name with a number where
// another bench of the same second has taken it.
func newFolder(name string) (string, error) {
	for n := 1; ; n++ {
		folder := name
		if n > 1 {
			folder = fmt.Sprintf("%s-%d", name, n)
		}
		if err := os.Mkdir(folder, 0o755); !errors.Is(err, os.ErrExist) {
			return folder, err
		}
	}
}

// resumeLine is the command that goes on with a campaign.
func resumeLine(folder string) string {
	return "moebalance bench --resume " + bench.Quote([]string{folder})
}

// thisHost is the machine we run on.
func thisHost() bench.Host {
	executable, _ := os.Executable() // without it, a command named moebalance must be on the path
	h := bench.Host{
		Environ: os.Environ(), Executable: executable,
		Now: time.Now, Sleep: sleep, Patience: bench.DefaultPatience, Counts: countedLoads,
	}
	if smi, err := exec.LookPath("nvidia-smi"); err == nil {
		h.GPUs = func(ctx context.Context) ([]bench.GPU, error) { return bench.NvidiaSMI(ctx, smi) }
	}
	return h
}

// countedLoads is how even the expert statistics at a path are.
func countedLoads(path string) (bench.Counted, error) {
	record, err := counts.Read(path)
	if err != nil {
		return bench.Counted{}, err
	}
	layers, _, err := record.Imbalance(counts.Options{})
	if err != nil {
		return bench.Counted{}, err
	}
	ranks, experts := counts.Summarize(layers, router.LevelRank), counts.Summarize(layers, router.LevelExpert)
	c := bench.Counted{Source: path, Ranks: record.Ranks, RankMaxOverMean: router.Undefined(), RankFloor: router.Undefined(),
		ExpertMaxOverMean: router.Undefined(), ExpertFloor: router.Undefined()}
	if ranks.Layers > 0 {
		c.RankMaxOverMean, c.RankFloor = ranks.WorstMax, ranks.WorstFloor
	}
	if experts.Layers > 0 {
		c.ExpertMaxOverMean, c.ExpertFloor = experts.WorstMax, experts.WorstFloor
	}
	return c, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errNotComparable stops a campaign after its first pair.
var errNotComparable = errors.New("the arms of the first pair cannot be compared")

func (o *benchOptions) runCampaign(ctx context.Context, campaign *bench.Campaign, stderr io.Writer) error {
	progress := newBenchProgress(stderr, campaign.Spec.Metric, o.quiet)
	defer progress.close()
	h := thisHost()
	h.Report = progress.event
	verdict := func(c *bench.Campaign, confidence float64, traces bench.TraceProof) compare.Verdict {
		return compare.Judge(compare.Recorded(c, confidence, traces)).Verdict
	}
	h.Decide = func(c *bench.Campaign, confidence float64) (bool, error) {
		v := verdict(c, confidence, c.TracesToCome())
		return v != compare.Inconclusive && !(v == compare.Invalid && o.keepGoing), nil
	}
	if !o.keepGoing {
		h.Accept = func(c *bench.Campaign) error {
			if verdict(c, c.Confidence(), c.TracesToCome()) == compare.Invalid {
				return errNotComparable
			}
			if verdict(c, c.Confidence(), bench.TraceProof{}) == compare.Invalid {
				progress.say("nothing proves how the first pair was routed: the traces of the profiled pair must")
			}
			return nil
		}
	}
	return campaign.Run(ctx, h)
}

// stopped says why a campaign ended before its end, and how to go on. One that
// has nothing to show is removed.
func (o *benchOptions) stopped(campaign *bench.Campaign, cause error) error {
	folder, finished, total := campaign.Folder, campaign.Finished(), len(campaign.Launches)
	gone, err := false, error(nil)
	if o.resume == "" {
		gone, err = campaign.Discard()
	} else {
		err = campaign.Close()
	}
	if err != nil {
		cause = errors.Join(cause, err)
	}
	var failed *bench.LaunchError
	switch {
	case errors.Is(cause, context.Canceled):
		cause = fmt.Errorf("bench: interrupted after %d of %d launches; go on with: %s", finished, total, resumeLine(folder))
		if gone {
			cause = errors.New("bench: interrupted before any launch had finished")
		}
		return withCode(exitInterrupted, cause)
	case errors.As(cause, &failed) && gone:
		failed.Folder = "" // it had no output
		return fmt.Errorf("bench: %w", failed)
	case finished > 0:
		return fmt.Errorf("bench: %w; %d of %d launches are kept: once it is mended, go on with: %s", cause, finished, total, resumeLine(folder))
	}
	return fmt.Errorf("bench: %w", cause)
}

// gates turns the result into the exit code that was asked for.
func (o *benchOptions) gates(r benchResult) error {
	switch {
	case r.Verdict == compare.Invalid:
		return withCode(exitNotComparable, fmt.Errorf("bench: invalid: %s", strings.Join(r.Reasons, "; ")))
	case o.failAbove.given && r.Gain.Low.Float64() > o.failAbove.fraction:
		return withCode(exitGate, fmt.Errorf("bench: the gain is above %.4g %%: %s", 100*o.failAbove.fraction, r.Reasons[0]))
	case o.failAbove.given && !r.Gain.Low.Defined():
		return withCode(exitInconclusive, fmt.Errorf("bench: --fail-above has no interval of the gain to judge: %s", strings.Join(r.Reasons, "; ")))
	case o.requireVerdict && r.Verdict == compare.Inconclusive:
		return withCode(exitInconclusive, fmt.Errorf("bench: inconclusive: %s", strings.Join(r.Reasons, "; ")))
	}
	return nil
}
