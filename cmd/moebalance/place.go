package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
)

type placeOptions struct {
	ranks     int
	redundant []int
	nodes     int
	judge     []string
	model     modelFlags
	threshold share
	tensorrt  target.File
	sglang    target.File
	vllm      target.File
	out       resultFlags
}

func placeCmd() *cobra.Command {
	var o placeOptions
	c := command("place", argCount(1, -1, "at least one file, folder or URL of expert statistics"), o.run)
	f := c.Flags()
	f.IntVar(&o.ranks, "ep", 0, "EP `RANKS` (default as recorded)")
	bindNumbers(c, &o.redundant, "redundant", []int{0}, "redundant experts in all (physical less logical experts); several are compared")
	f.StringArrayVar(&o.judge, "judge", nil, "judge on this `FILE` of expert statistics, learn on the arguments; can be repeated (default: learn on the first half, judge on the second)")
	f.IntVar(&o.nodes, "nodes", 1, "nodes of the ranks; where they divide the model's expert groups, groups stay on one node")
	o.model.bindCounts(c)
	o.threshold.fraction = defaultThreshold
	f.Var(&o.threshold, "threshold", "least reduction of the busiest rank's load that is worth a trial")
	o.tensorrt.Bind(c, "write-trtllm", "", "write the placement as an EPLB configuration of TensorRT-LLM to this `FILE`")
	o.sglang.Bind(c, "write-sglang", "", "write it for SGLang's --init-expert-location to this `FILE`")
	o.vllm.Bind(c, "write-vllm", "", "write it as an initial mapping of vLLM's offline EPLB to this `FILE`")
	o.out.bind(c, func() []string {
		return render.Place(&place.Result{Placements: make([]place.Placement, 1)}).TableNames()
	})
	o.out.bindTop(c)
	return c
}

func (o *placeOptions) check(c *cobra.Command, paths []string) error {
	writes := o.tensorrt.Path != "" || o.sglang.Path != "" || o.vllm.Path != ""
	switch {
	case o.ranks < 0 || c.Flags().Changed("ep") && o.ranks == 0:
		return usagef("--ep: want at least 1 rank, have %d", o.ranks)
	case o.nodes < 1:
		return usagef("--nodes: want at least 1 node, have %d", o.nodes)
	case writes && len(o.redundant) > 1:
		return usagef("--redundant: want one value with --write-trtllm, --write-sglang or --write-vllm, have %v", o.redundant)
	}
	slices.Sort(o.redundant)
	o.redundant = slices.Compact(o.redundant)
	for i, path := range slices.Concat(paths, o.judge) {
		if slices.ContainsFunc(slices.Concat(paths, o.judge)[:i], func(other string) bool { return filepath.Clean(other) == filepath.Clean(path) }) {
			return usagef("want each of the counts once, have %s twice: learning and judging on the same counts proves nothing", path)
		}
	}
	return nil
}

func (o *placeOptions) run(c *cobra.Command, paths []string) error {
	if err := o.check(c, paths); err != nil {
		return err
	}
	result, err := source.Interruptible(c.Context(), func() (*place.Result, error) { return o.judged(c.Context(), paths) })
	if errors.Is(err, router.ErrShape) {
		err = withCode(exitUsage, err)
	}
	if err != nil {
		return err
	}
	if err := o.write(result); err != nil {
		return err
	}
	return o.out.write(c, render.Place(result))
}

// judged reads the records, and learns and judges the placements.
func (o *placeOptions) judged(ctx context.Context, paths []string) (*place.Result, error) {
	shape, err := o.model.shape()
	if err != nil {
		return nil, err
	}
	var records []*counts.Record
	for _, path := range slices.Concat(paths, o.judge) {
		r, err := source.ReadCounts(ctx, path)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	ranks := o.ranks
	if ranks == 0 {
		ranks = records[0].Ranks
	}
	if ranks == 0 {
		return nil, usagef("--ep: want the number of ranks, which %s does not say", paths[0])
	}
	experts, err := records[0].ExpertsOf(shape)
	if err != nil {
		return nil, err
	}
	for _, n := range o.redundant {
		switch over := (experts + n) % ranks; {
		case n > experts*ranks:
			return nil, usagef("--redundant: want at most %d, a copy of each expert on each rank, have %d", experts*ranks, n)
		case over != 0:
			return nil, usagef("--redundant %d: %d experts and %d copies do not divide over %d ranks; try %d", n, experts, n, ranks, n+ranks-over)
		}
	}
	learn, judge := place.Whole(records[:len(paths)]), place.Whole(records[len(paths):])
	if len(o.judge) == 0 {
		if learn, judge, err = place.Halves(records); err != nil {
			return nil, err
		}
	}
	return place.Judge(learn, judge, place.Options{Ranks: ranks, Redundant: o.redundant, Nodes: o.nodes, Shape: shape, Threshold: o.threshold.fraction})
}

// write writes the placement for the engines that are asked for.
func (o *placeOptions) write(result *place.Result) error {
	slots := result.Slots[o.redundant[0]]
	for _, engine := range []struct {
		file  *target.File
		write func(io.Writer) error
	}{
		{&o.tensorrt, slots.WriteTensorRT},
		{&o.sglang, func(w io.Writer) error { return slots.WriteSGLang(w, result.Experts) }},
		{&o.vllm, func(w io.Writer) error { return slots.WriteVLLM(w, result.Experts) }},
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
