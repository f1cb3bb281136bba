package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/manual"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

type placeOptions struct {
	ranks     []int
	redundant []int
	given     bool // redundant
	time      timeOptions
	nodes     int
	rebalance bool
	placing   source.Placing
	model     modelFlags
	threshold flags.Share
	tensorrt  target.File
	sglang    target.File
	vllm      target.File
	png, svg  target.Folder
	out       resultFlags
}

// timeOptions are the flags about evidence of time, and about the price of weights.
type timeOptions struct {
	trace      []string
	counts     string // of the traced run
	steps      *nsys.Steps
	campaign   string
	table      string
	stepTokens int
	stepTime   time.Duration
	bits       int
	bandwidth  float64
}

func (o *timeOptions) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.trace, "trace", nil,
		"`EXPORT` of the same model and EP size with learned routing, to fit the time of expert work; repeatable")
	f.StringVar(&o.counts, "counts", "",
		"`PATH`: folder or file of expert counts from the traced run (default: the first argument)")
	bindSteps(c, &o.steps)
	f.StringVar(&o.campaign, "campaign", "",
		"campaign folder or JSON `RESULT` of bench, for the step time with learned routing")
	f.StringVar(&o.table, "cost-table", "",
		"CSV `FILE` of measured MoE times in aiconfigurator's columns, for the named model")
	f.IntVar(&o.stepTokens, "step-tokens", 0, "tokens of all ranks in one step")
	f.DurationVar(&o.stepTime, "step-time", 0,
		"measured `TIME` of a step with learned routing, unprofiled, such as 62.1ms")
	f.IntVar(&o.bits, "weight-bits", 16, "bits of an expert weight, for the price of copies and moves")
	f.Float64Var(&o.bandwidth, "bandwidth", 0, "GB/s at which a rank loads weights")
}

func (o *timeOptions) check() error {
	switch {
	case len(o.trace) > 0 && o.table != "":
		return usagef("want one of --trace and --cost-table, have both")
	case (o.counts != "" || o.steps != nil) && len(o.trace) == 0:
		return usagef("--counts and --steps are of a trace: add --trace")
	case o.campaign != "" && len(o.trace) == 0 && o.table == "":
		return usagef("--campaign has the time of steps and not of slots: add --trace or --cost-table")
	case o.stepTime != 0 && len(o.trace) == 0 && o.table == "" || o.stepTime != 0 && o.campaign != "":
		return usagef("--step-time: want --trace or --cost-table with it, and no --campaign")
	case o.stepTime < 0 || o.stepTokens < 0 || o.bits < 1 || !(o.bandwidth >= 0 && o.bandwidth < 1e9):
		return usagef("--step-time, --step-tokens and --bandwidth: want 0 or more, --weight-bits at least 1; have %v, %d, %g, %d", o.stepTime, o.stepTokens, o.bandwidth, o.bits)
	}
	return nil
}

// cost is that of expert work; the reason says why there is none, and what to give.
func (o *timeOptions) cost(ctx context.Context, first string, record *counts.Record, m *router.Model,
	threshold float64) (cost *place.Cost, reason string, err error) {
	topK := record.TopK
	if m != nil {
		topK = m.TopK
	}
	switch {
	case o.stepTokens > 0 && topK == 0:
		return nil, "", usagef(
			"--step-tokens: name the model with --model or --config, for the experts per token are not recorded")
	case len(o.trace) > 0:
		if cost, reason, err = o.traced(ctx, first, topK, m, threshold); reason != "" {
			reason = "no time is predicted from the trace: " + reason
		}
	case o.table == "":
		return nil, "no evidence of time: give --trace EXPORT of the same model, or --cost-table FILE", nil
	case m == nil || m.Hidden == 0:
		return nil, "", usagef("--cost-table: name the model with --model or --config")
	default:
		cost, reason, err = o.tabled(record, *m)
	}
	if cost != nil && o.stepTime > 0 {
		cost.StepNS, cost.StepBasis = router.Number(o.stepTime), "measured"
	}
	if cost == nil || err != nil || o.campaign == "" {
		return cost, reason, err
	}
	measured, err := source.ReadCampaign(ctx, o.campaign, threshold)
	if err != nil {
		return nil, "", fmt.Errorf("--campaign: %w", err)
	}
	if why := cost.WithCampaign(measured.Result, float64(o.stepTokens)); why != "" {
		return nil, "", usagef("--campaign: %s", why)
	}
	return cost, "", nil
}

// traced fits the cost to a trace, or to a result of the built-in workload, and the counts
// of its run.
func (o *timeOptions) traced(ctx context.Context, first string, topK int, m *router.Model,
	threshold float64) (*place.Cost, string, error) {
	if res, ok := readWorkload(o.trace[0]); ok && len(o.trace) == 1 {
		record, err := source.ReadCounts(ctx, cmp.Or(o.counts, first), nil)
		if err != nil {
			return nil, "", err
		}
		return place.FromTimes(o.trace[0], res.StepExpertsMS, res.StepMS, record)
	}
	paths, err := source.Exports(o.trace, nil)
	if err != nil {
		return nil, "", err
	}
	statistics := source.Statistics{Path: cmp.Or(o.counts, first)}
	if m != nil {
		statistics.Shape = &m.Shape
	}
	t, err := source.Trace(ctx, paths, nsys.Options{Threshold: threshold, Steps: o.steps, Converter: reportConverter()},
		statistics)
	if err != nil {
		return nil, "", fmt.Errorf("--trace: %w", err)
	}
	record, err := source.ReadCounts(ctx, statistics.Path, nil)
	if err != nil {
		return nil, "", err
	}
	return place.FromTrace(t, record, float64(o.stepTokens*topK), topK)
}

// readWorkload reads a result of the built-in workload; not ok if the file is something else.
func readWorkload(path string) (res workload.Result, ok bool) {
	file, err := input.Open(path)
	if err != nil {
		return res, false
	}
	defer file.Close()
	return workload.ReadResult(file)
}

// tabled fits the cost to a table.
func (o *timeOptions) tabled(record *counts.Record, m router.Model) (*place.Cost, string, error) {
	tokens := float64(o.stepTokens)
	if tokens == 0 && !record.Window {
		tokens = place.SlotsPerStep(record) / float64(m.TopK)
	}
	if tokens == 0 {
		return nil, "no time is predicted from the table: the counts are sums over an unknown number of steps; give --step-tokens", nil
	}
	file, err := input.Open(o.table)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	cost, err := place.FromTable(o.table, file, m, tokens)
	return cost, "", err
}

func placeCmd() *cobra.Command {
	var o placeOptions
	c := command("place", argCount(1, -1, "at least one file, folder or URL of expert counts"), o.run)
	f := c.Flags()
	flags.Numbers(c, &o.ranks, "ep", "", "expert-parallel ranks (default as recorded); several are compared")
	flags.Numbers(c, &o.redundant, "redundant", "0",
		"redundant experts in all (physical less logical experts); several are compared (default as recorded, else 0)")
	f.StringArrayVar(&o.placing.Judge, "judge", nil,
		"judge on this `FILE` of expert counts, learn from the arguments; repeatable (default: learn from the first half, judge on the second)")
	f.StringVar(&o.placing.From, "from", "",
		"`FILE` of the placement that runs now, as 'moebalance counts --placement' reads it (default as recorded, else contiguous)")
	f.StringVar(&o.placing.MaxMoves, "max-moves", "",
		"limit on moves from what runs now: `SHARE` of the copies such as 10%, bytes such as 2GB (with --model), or time per rank such as 50ms (with --bandwidth)")
	f.StringVar(&o.placing.Plan, "plan", place.PlanRobust,
		"robust, for traffic that varies, or eplb, DeepSeek's plan on the sum of all windows")
	f.StringVar(&o.placing.Goal, "goal", "",
		"then lower this of the busiest rank's load over the learned windows: mean, max or a quantile such as p90")
	f.BoolVar(&o.rebalance, "rebalance", false,
		"compare policies for placing anew over the windows in order: never, once, always, every N, below a balancedness")
	f.IntVar(&o.nodes, "nodes", 1,
		"nodes that the ranks are on; expert groups stay on one node where nodes divide them")
	o.model.bindCounts(c)
	bindAxes(c, &o.placing.Axes)
	o.threshold.Fraction = defaultThreshold
	f.Var(&o.threshold, "threshold", "smallest reduction of the busiest rank's load that is worth a trial")
	section(c, manual.OwnSection)
	o.tensorrt.Bind(c, "write-trtllm", "",
		"write the placement to this `FILE`, as TensorRT-LLM's EPLB configuration")
	o.sglang.Bind(c, "write-sglang", "", "write it to this `FILE`, for SGLang's --init-expert-location")
	o.vllm.Bind(c, "write-vllm", "", "write it to this `FILE`, as the initial mapping of vLLM's offline EPLB")
	section(c, "Placements for engines")
	o.time.bind(c)
	section(c, "Time")
	o.png.Bind(c, "png", "", "`DIR` for the figures as PNG, created if missing")
	o.svg.Bind(c, "svg", "", "`DIR` for the figures as SVG")
	o.out.bind(c, func() []string {
		return render.Place(&place.Result{Placements: make([]place.Placement, 1),
			Rebalance: &place.Rebalance{Ways: []place.Way{{Chosen: true}}, Settings: make([]place.Setting, 2)}}, "").TableNames()
	})
	o.out.bindTop(c)
	return c
}

func (o *placeOptions) check(paths []string) error {
	switch {
	case len(o.ranks) > 0 && slices.Min(o.ranks) < 1:
		return usagef("--ep: want at least 1 rank, have %v", o.ranks)
	case o.nodes < 1:
		return usagef("--nodes: want at least 1 node, have %d", o.nodes)
	case o.rebalance && (len(o.redundant) > 1 || len(o.ranks) > 1):
		return usagef("--rebalance: want one value of --redundant and of --ep with it")
	case o.writes() && (len(o.redundant) > 1 || len(o.ranks) > 1):
		return usagef("--redundant and --ep: want one value with --write-trtllm, --write-sglang or --write-vllm")
	}
	if err := o.time.check(); err != nil {
		return err
	}
	for _, values := range []*[]int{&o.redundant, &o.ranks} {
		slices.Sort(*values)
		*values = slices.Compact(*values)
	}
	for i, path := range slices.Concat(paths, o.placing.Judge) {
		if slices.ContainsFunc(slices.Concat(paths, o.placing.Judge)[:i],
			func(other string) bool { return filepath.Clean(other) == filepath.Clean(path) }) {
			return usagef("want each of the counts once, have %s twice: learning and judging on the same counts proves nothing", path)
		}
	}
	return nil
}

func (o *placeOptions) writes() bool {
	return o.tensorrt.Path != "" || o.sglang.Path != "" || o.vllm.Path != ""
}

func (o *placeOptions) run(c *cobra.Command, paths []string) error {
	if err := o.check(paths); err != nil {
		return err
	}
	o.given = c.Flags().Changed("redundant")
	result, err := source.Interruptible(c.Context(),
		func() (*place.Result, error) { return o.judged(c.Context(), paths) })
	if errors.Is(err, router.ErrShape) {
		err = withCode(exitUsage, err)
	}
	if err != nil {
		return err
	}
	if err := cmp.Or(o.write(result), o.draw(c, result)); err != nil {
		return err
	}
	return o.out.write(c, render.Place(result, o.apart(c, paths)))
}

// apart are the arguments but for the number of copies and the files to write; none where files were
// written.
func (o *placeOptions) apart(c *cobra.Command, paths []string) string {
	if o.writes() {
		return ""
	}
	return sameResult(c, paths, "ep", "redundant")
}

// judged reads the records, and learns and judges the placements.
func (o *placeOptions) judged(ctx context.Context, paths []string) (*place.Result, error) {
	p := &o.placing
	p.Learn, p.WeightBits = paths, o.time.bits
	p.Options = place.Options{Ranks: o.ranks, Nodes: o.nodes, Threshold: o.threshold.Fraction,
		Bandwidth: 1e9 * o.time.bandwidth, Rebalance: o.rebalance}
	if o.given {
		p.Options.Redundant = o.redundant
	}
	if o.model.named() {
		found, err := o.model.find()
		if err != nil {
			return nil, err
		}
		p.Model = &found
	}
	if err := p.Read(ctx); err != nil {
		return nil, err
	}
	learn, judge, err := p.Windows()
	if err != nil {
		return nil, err
	}
	options := p.Options
	if options.Cost, options.NoTime, err = o.time.cost(ctx, p.Learn[0], p.Records[0], p.Model,
		o.threshold.Fraction); err != nil {
		return nil, err
	}
	if c := options.Cost; c != nil && c.Ranks != 0 && !slices.Contains(options.Ranks, c.Ranks) {
		options.Cost, options.NoTime = nil,
			fmt.Sprintf("no time is predicted from the trace: it is of %d ranks; give --ep %[1]d, a trace on %d ranks, or --cost-table", c.Ranks, options.Ranks[0])
	}
	return place.Judge(learn, judge, options)
}

// write writes the placement for the engines that are asked for.
func (o *placeOptions) write(result *place.Result) error {
	slots := result.Slots[result.Placements[0].Plan]
	for _, engine := range []struct {
		file  *target.File
		write func(io.Writer) error
	}{
		{&o.tensorrt, slots.WriteTensorRT},
		{&o.sglang, func(w io.Writer) error { return slots.WriteSGLang(w, result.Experts) }},
		{&o.vllm, func(w io.Writer) error { return slots.WriteVLLM(w, result.Experts, result.MoELayers) }},
	} {
		if engine.file.Path == "" {
			continue
		}
		if err := engine.file.Write(engine.write); err != nil {
			return err
		}
	}
	return nil
}

// draw writes the figures that are asked for.
func (o *placeOptions) draw(c *cobra.Command, result *place.Result) error {
	if o.png.Path == "" && o.svg.Path == "" {
		return nil
	}
	figures, err := plots.Placement(result)
	if err != nil {
		return err
	}
	return cmp.Or(writeFigures(c, figures, &o.png, "png", plots.Figure.PNG), writeFigures(c, figures, &o.svg, "svg",
		plots.Figure.SVG))
}
