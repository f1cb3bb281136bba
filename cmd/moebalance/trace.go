package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

type traceOptions struct {
	ranks     []string
	steps     []string
	layers    []string
	experts   []string
	counts    string
	model     modelFlags // of the counts
	summary   string
	like      string
	scrub     string
	threshold share
	failAbove share
	out       resultFlags
}

func traceCmd() *cobra.Command {
	var o traceOptions
	c := &cobra.Command{
		Use:   "trace EXPORT…",
		Short: "where the GPU time goes: layers, ranks, phases, experts",
		Long: `trace reads the SQLite exports of Nsight Systems (2021 to 2026) of one run, one
per rank or one of all ranks, and says where the GPU time went. Traces of
PyTorch's profiler (.json, .json.gz; one per rank) are read likewise.

A kernel belongs to the ranges (NVTX) that were open on the thread when it was
launched, for a CUDA graph when it was captured. Steps, layers, experts and
phases come from the ranges' names; without a range, the phase comes from the
kernel's name, and is unknown rather than guessed. What runs in ranges named
'layer_wise_benchmarks ignore' counts nowhere, and the result says how much it is.

Per layer, time of expert compute is compared over ranks: max/mean in each step,
then the mean over steps. Straggler loss is max over ranks − mean over ranks of
compute time per step. Collectives are mostly waiting for the slowest rank: they
are split into wait and transfer and never count as compute. Standard deviations
are those of a sample; percentiles are nearest ranks.
An expert's time is observed where it has ranges of its own; where one kernel
serves all, --counts allocates its time by recorded load, and says so. The load is
judged as by the verb counts: --model or --config names the groups of experts, which
no statistics hold and which make chance more uneven. Statistics of another run or
model are refused where the trace shows it: by ranks, by layers, by the experts that
ran on a rank, by the number of experts that the gate's kernel is made for.

--summary writes a small file from which every number follows as from the export;
trace merges any number of them. Ranges are read with the patterns of that time.

--like-nsys prints the bytes that 'nsys stats --format csv' prints, so that both can
be compared. Names with quotes or line breaks, which it prints as they are, are
escaped here, so that any reader of CSV finds their ends.

An export holds the whole environment of the profiled command, host, user, paths
and output. --scrub writes a copy without them that gives the same analysis; the
names of kernels and ranges stay in it.`,
		Example: `  moebalance trace testdata/gptoss-ep4-loop/normal.sqlite
  moebalance trace --counts testdata/deepseek-ep4-ranks/counts-normal --model deepseek-v3 testdata/deepseek-ep4-ranks/normal.rank?.sqlite
  moebalance trace --like-nsys cuda_gpu_kern_sum testdata/gptoss-ep4-loop/normal.sqlite
  moebalance trace --format csv --table experts testdata/gptoss-ep4-loop/normal.sqlite
  moebalance trace testdata/torch/grouped-normal.rank?.json.gz`,
		Args: argCount(1, -1, "at least one export"),
		RunE: func(c *cobra.Command, paths []string) error { return o.run(c, paths) },
	}
	f := c.Flags()
	o.bindPatterns(c)
	f.StringVar(&o.counts, "counts", "", "`DIR` or file of expert statistics of the same run")
	o.model.bindCounts(f)
	f.StringVar(&o.summary, "summary", "", "write a summary of the exports to this `FILE` for a later trace of summaries, and nothing else")
	f.StringVar(&o.like, "like-nsys", "", "print the CSV of 'nsys stats' for this `REPORT` instead: "+strings.Join(nsys.LikeReports, ", "))
	f.StringVar(&o.scrub, "scrub", "", "write a copy of the export without environment, host, user, paths and output to this `FILE`, and nothing else")
	o.threshold.fraction = defaultThreshold
	f.Var(&o.threshold, "threshold", "flag an imbalance above this")
	f.Var(&o.failAbove, "fail-above", "exit 3 when any layer's imbalance of expert time over ranks is above this")
	o.out.bind(c)
	return c
}

// bindPatterns binds the flags that say how exports are read.
func (o *traceOptions) bindPatterns(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.ranks, "rank", nil, "`FILE=N` or N: the rank of an export, in place of what it says itself")
	f.StringArrayVar(&o.steps, "step-pattern", nil, "regular expression with a group (?P<step>…) for names of ranges, before the built-in ones")
	f.StringArrayVar(&o.layers, "layer-pattern", nil, "likewise with (?P<layer>…)")
	f.StringArrayVar(&o.experts, "expert-pattern", nil, "likewise with (?P<expert>…)")
}

// check finds bad flags before a file is opened, and turns them into options.
// paths are the exports that --rank may name.
func (o *traceOptions) check(paths ...string) (nsys.Options, error) {
	n := nsys.Options{Threshold: o.threshold.fraction, Rank: map[string]int{}}
	for _, r := range o.ranks {
		file, number, named := strings.Cut(r, "=")
		if !named {
			file, number = "", r
		}
		rank, err := strconv.Atoi(number)
		if err != nil || rank < 0 {
			return n, usagef("--rank: want FILE=N or N with N of at least 0, have %q", r)
		}
		known := func(path string) bool { return path == file || base(path) == file }
		if named && !slices.ContainsFunc(paths, known) {
			return n, usagef("--rank: no export %q among those given", file)
		}
		n.Rank[file] = rank
	}
	instead := 0 // of a trace
	for _, flag := range []string{o.like, o.summary, o.scrub} {
		if flag != "" {
			instead++
		}
	}
	if instead > 0 && (o.counts != "" || o.failAbove.given) {
		return n, usagef("--counts and --fail-above judge a trace: want neither with --like-nsys, --summary or --scrub")
	}
	if o.model.named() && o.counts == "" {
		return n, usagef("--model and --config name the model of recorded counts: want --counts with them")
	}
	if instead > 1 {
		return n, usagef("--like-nsys, --summary and --scrub: want one of them")
	}
	if o.scrub != "" && len(paths) != 1 {
		return n, usagef("--scrub: want one export, have %d", len(paths))
	}
	var user []string
	for _, p := range []struct {
		flag, group string
		given       []string
	}{{"step-pattern", "step", o.steps}, {"layer-pattern", "layer", o.layers}, {"expert-pattern", "expert", o.experts}} {
		for _, text := range p.given {
			if !strings.Contains(text, "(?P<"+p.group+">") && !strings.Contains(text, "(?<"+p.group+">") {
				return n, usagef("--%s: want a group (?P<%s>…) in %q", p.flag, p.group, text)
			}
			user = append(user, text)
		}
	}
	if o.like != "" && !slices.Contains(nsys.LikeReports, o.like) {
		return n, usagef("--like-nsys: unknown report %q: want one of %s", o.like, strings.Join(nsys.LikeReports, ", "))
	}
	var err error
	if n.Patterns, err = nsys.NewPatterns(user...); err != nil {
		return n, withCode(exitUsage, err)
	}
	return n, o.out.check()
}

func (o *traceOptions) run(c *cobra.Command, paths []string) error {
	options, err := o.check(paths...)
	if err != nil {
		return err
	}
	if o.scrub != "" {
		return nsys.Scrub(c.Context(), paths[0], o.scrub)
	}
	options.Converter = reportConverter()
	progress, done := readingBar(c.ErrOrStderr(), paths)
	defer done()
	options.Progress = progress
	if o.like != "" {
		return o.likeNsys(c, paths, options)
	}
	if o.summary != "" {
		err := writeFile(o.summary, func(w io.Writer) error { return nsys.Summarize(c.Context(), w, paths, options) })
		return withRankHint(err, rankFlag)
	}
	shape, err := o.model.shape()
	if err != nil {
		return err
	}
	t, err := readTrace(c.Context(), paths, options, statistics{o.counts, shape})
	if err != nil {
		return withRankHint(err, rankFlag)
	}
	document := traceDocument(t)
	if o.out.table == "" && o.out.format != string(output.CSV) {
		document = overview(t)
	}
	if err := o.out.write(c, document); err != nil {
		return err
	}
	if o.failAbove.given {
		return traceGate(t, o.failAbove.fraction)
	}
	return nil
}

// likeNsys prints one of the profiler's own reports.
func (o *traceOptions) likeNsys(c *cobra.Command, paths []string, options nsys.Options) error {
	if len(paths) != 1 {
		return usagef("--like-nsys: want one export, have %d", len(paths))
	}
	report := func(w io.Writer) error { return nsys.LikeNsys(c.Context(), w, paths[0], o.like, options) }
	if o.out.file != "" {
		return writeFile(o.out.file, report)
	}
	return report(c.OutOrStdout())
}

// reportConverter finds the profiler's own program, for reports given in place
// of exports; without one they are refused with the command to run.
func reportConverter() nsys.Converter {
	program, err := exec.LookPath("nsys")
	if err != nil {
		return nsys.Converter{}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nsys.Converter{}
	}
	return nsys.Converter{Nsys: program, Cache: filepath.Join(cache, "moebalance", "exports")}
}

// readingBar shows the bytes read so far, if stderr is a terminal; done takes it
// away.
func readingBar(stderr io.Writer, paths []string) (progress func(bytes int64), done func()) {
	if !onTerminal(stderr) {
		return nil, func() {}
	}
	var total int64
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			total += info.Size()
		}
	}
	bars := mpb.New(mpb.WithOutput(stderr), mpb.WithWidth(40))
	bar := bars.AddBar(total, mpb.BarRemoveOnComplete(), mpb.PrependDecorators(decor.Name("reading "), decor.CountersKibiByte("% .1f / % .1f")))
	return bar.IncrInt64, func() { bar.Abort(true); bars.Wait() }
}

// traceGate fails on the worst layer.
func traceGate(t *nsys.Trace, limit float64) error {
	o, ok := t.RankTime()
	switch {
	case !ok:
		return withCode(exitInconclusive, fmt.Errorf("--fail-above: no layer's expert time is known on two ranks or more, so there is nothing to judge"))
	case router.Above(o.WorstMaxOverMean, router.Undefined(), limit):
		return withCode(exitGate, fmt.Errorf("expert time of layer %d is %.1f %% over the ranks' mean, above %.1f %%", o.WorstLayer, 100*(o.WorstMaxOverMean-1), 100*limit))
	}
	return nil
}

// base names a file in tables, where folders only take room.
func base(path string) string { return filepath.Base(path) }
