package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
)

type placeOptions struct {
	ranks     []int
	redundant []int
	given     bool // redundant
	time      source.Timing
	nodes     int
	placing   source.Placing
	model     modelFlags
	threshold flags.Share
	tensorrt  target.File
	sglang    target.File
	vllm      target.File
	out       resultFlags
}

// bindTiming binds the flags about evidence of time, and about the price of weights.
func bindTiming(c *cobra.Command, o *source.Timing) {
	f := c.Flags()
	f.StringArrayVar(&o.Trace, "trace", nil,
		"`EXPORT` of the same model and EP size with learned routing, to fit the time of expert work; repeatable")
	f.StringVar(&o.Counts, "counts", "",
		"`PATH`: folder or file of expert counts from the traced run (default: the first argument)")
	bindSteps(c, &o.Steps)
	f.StringVar(&o.Campaign, "campaign", "",
		"campaign folder or JSON `RESULT` of bench: for the step time with learned routing, or, of several routers, for "+
			"the gain")
	f.IntVar(&o.StepTokens, "step-tokens", 0, "tokens of all ranks in one step")
	f.DurationVar(&o.StepTime, "step-time", 0,
		"measured `TIME` of a step with learned routing, unprofiled, such as 62.1ms")
	f.IntVar(&o.WeightBits, "weight-bits", 16, "bits of an expert weight, for the price of copies and moves")
	f.Float64Var(&o.Bandwidth, "bandwidth", 0, "GB/s at which a rank loads weights")
}

func placeCmd() *cobra.Command {
	var o placeOptions
	c := command("place", argCount(1, -1, "at least one file, folder or URL of expert counts"), o.run)
	f := c.Flags()
	flags.Numbers(c, &o.ranks, "ep", "", "expert-parallel ranks (default as recorded); several are compared")
	flags.Numbers(c, &o.redundant, "redundant", "0",
		"redundant experts in all (physical less logical experts); several are compared (default as recorded, else 0)")
	f.StringArrayVar(&o.placing.Judge, "judge", nil,
		"judge on this `FILE` of expert counts, learn from the arguments; repeatable (default: learn from all files, and "+
			"judge "+
			"on each kind left out in turn; of a single file, judge on the second half)")
	f.StringVar(&o.placing.From, "from", "",
		"`FILE` of the placement that runs now, as 'moebalance counts --placement' reads it (default as recorded, else "+
			"contiguous)")
	f.StringVar(&o.placing.MaxMoves, "max-moves", "",
		"limit on moves from what runs now: `SHARE` of the copies such as 10%, bytes such as 2GB (with --model), or time "+
			"per rank such as 50ms (with --bandwidth)")
	f.StringVar(&o.placing.Plan, "plan", place.PlanRobust,
		"robust, for traffic that varies, or eplb, DeepSeek's plan on the sum of all windows")
	f.IntVar(&o.nodes, "nodes", 1,
		"nodes that the ranks are on; expert groups stay on one node where nodes divide them")
	o.model.bindCounts(c)
	bindAxes(c, &o.placing.Axes)
	o.threshold.Fraction = defaultThreshold
	f.Var(&o.threshold, "threshold", "smallest reduction of the busiest rank's load that is worth a trial")
	o.tensorrt.Bind(c, "write-trtllm", "",
		"write the placement to this `FILE`, as TensorRT-LLM's EPLB configuration")
	o.sglang.Bind(c, "write-sglang", "", "write it to this `FILE`, for SGLang's --init-expert-location")
	o.vllm.Bind(c, "write-vllm", "", "write it to this `FILE`, as the initial mapping of vLLM's offline EPLB")
	bindTiming(c, &o.time)
	o.out.bind(c, func() []string {
		return render.Place(&place.Result{Placements: make([]place.Placement, 1)}, "").TableNames()
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
	case o.writes() && (len(o.redundant) > 1 || len(o.ranks) > 1):
		return usagef("--redundant and --ep: want one value with --write-trtllm, --write-sglang or --write-vllm")
	}
	if err := o.time.Check(); err != nil {
		return err
	}
	for _, values := range []*[]int{&o.redundant, &o.ranks} {
		slices.Sort(*values)
		*values = slices.Compact(*values)
	}
	for i, path := range slices.Concat(paths, o.placing.Judge) {
		if slices.ContainsFunc(slices.Concat(paths, o.placing.Judge)[:i],
			func(other string) bool { return filepath.Clean(other) == filepath.Clean(path) }) {
			return usagef("want each of the counts once, have %s twice: a plan is not tested by the counts it was learned from",
				path)
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
	if err := o.write(result); err != nil {
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
	p.Learn, p.WeightBits, o.time.Converter = paths, o.time.WeightBits, reportConverter()
	p.Options = place.Options{Ranks: o.ranks, Nodes: o.nodes, Threshold: o.threshold.Fraction,
		Bandwidth: 1e9 * o.time.Bandwidth}
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
	if err := o.time.Predict(ctx, p.Learn[0], p.Records[0], p.Model, &options); err != nil {
		return nil, err
	}
	if c := options.Cost; c != nil && c.Ranks != 0 && !slices.Contains(options.Ranks, c.Ranks) {
		options.Cost, options.NoTime = nil, router.Warn("no_time", "", "why", "ranks", "ranks", c.Ranks, "asked",
			options.Ranks[0])
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
