package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
)

type placeOptions struct {
	Ranks     flags.Value[[]int]   `flag:"ep"`
	Redundant flags.Value[[]int]   `flag:"redundant"`
	Judge     []string             `flag:"judge"`
	From      string               `flag:"from"`
	MaxMoves  flags.Value[float64] `flag:"max-moves"`
	Plan      flags.Value[string]  `flag:"plan"`
	Nodes     int                  `flag:"nodes"`
	modelFlags
	axesFlags
	Threshold flags.Value[float64] `flag:"threshold"`
	TensorRT  target.File          `flag:"write-trtllm"`
	SGLang    target.File          `flag:"write-sglang"`
	VLLM      target.File          `flag:"write-vllm"`
	Ascend    target.File          `flag:"write-ascend"`
	source.Timing
	resultFlags
}

func placeCmd() *cobra.Command {
	o := placeOptions{Ranks: flags.Numbers(""), Redundant: flags.Numbers("0"), Plan: newPlan(), axesFlags: newAxes(),
		Nodes:     1,
		Threshold: flags.Share(defaultThreshold), MaxMoves: flags.Share(""), resultFlags: newResult()}
	return tabled(verb("place", argCount(1, -1, "at least one file or folder of expert counts"), &o, o.run),
		render.Place(&place.Result{Placements: make([]place.Placement, 1)}, "").TableNames()...)
}

// newPlan is the flag of a policy. The robust plan is chosen where the counts allow it, which "" stands for.
func newPlan() flags.Value[string] {
	return flags.Read(func(text string) (string, error) {
		switch text {
		case place.PlanEPLB:
			return text, nil
		case place.PlanRobust:
			return "", nil
		}
		return "", fmt.Errorf("want robust or eplb")
	}, place.PlanRobust)
}

func (o *placeOptions) check() error {
	switch {
	case len(o.Ranks.Is) > 0 && slices.Min(o.Ranks.Is) < 1:
		return usagef("--ep: want at least 1 rank, have %v", o.Ranks.Is)
	case o.MaxMoves.Is > 1:
		return usagef("--max-moves: want at most 100%%, all copies, have %s", o.MaxMoves.String())
	case o.Nodes < 1:
		return usagef("--nodes: want at least 1 node, have %d", o.Nodes)
	case o.writes() && (len(o.Redundant.Is) > 1 || len(o.Ranks.Is) > 1):
		return usagef("--redundant and --ep: want one value where a placement is written")
	}
	if err := o.Timing.Check(); err != nil {
		return err
	}
	for _, values := range []*[]int{&o.Redundant.Is, &o.Ranks.Is} {
		slices.Sort(*values)
		*values = slices.Compact(*values)
	}
	return nil
}

func (o *placeOptions) writes() bool {
	return o.TensorRT.Path != "" || o.SGLang.Path != "" || o.VLLM.Path != "" || o.Ascend.Path != ""
}

func (o *placeOptions) run(c *cobra.Command, paths []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if !c.Flags().Changed("redundant") {
		o.Redundant.Is = nil // as recorded
	}
	result, err := o.judged(c.Context(), paths)
	if errors.Is(err, router.ErrShape) {
		err = withCode(exitUsage, err)
	}
	if err != nil {
		return err
	}
	files, err := o.writePlacements(result)
	if err != nil {
		return err
	}
	return o.write(c, render.Place(result, o.apart(c, paths), files...))
}

// apart are the arguments but for the number of copies and the files to write.
func (o *placeOptions) apart(c *cobra.Command, paths []string) string {
	return sameResult(c, paths, "ep", "redundant", "write-trtllm", "write-sglang", "write-vllm", "write-ascend")
}

// judged reads the records, and learns and judges the placements.
func (o *placeOptions) judged(ctx context.Context, paths []string) (*place.Result, error) {
	o.Converter = reportConverter()
	p := source.Placing{Learn: paths, Judge: o.Judge, Axes: o.Axes.Is, From: o.From, Timing: o.Timing,
		Options: place.Options{Ranks: o.Ranks.Is, Redundant: o.Redundant.Is, Nodes: o.Nodes, Policy: o.Plan.Is,
			Threshold: o.Threshold.Is}}
	if o.MaxMoves.Given {
		p.Options.MaxMoves = &o.MaxMoves.Is
	}
	if o.named() {
		found, err := o.find()
		if err != nil {
			return nil, err
		}
		p.Shape, p.MoELayers = &found.Shape, found.Routed()
	}
	return p.Judged(ctx)
}

// writePlacements writes the placement for the engines that are asked for.
func (o *placeOptions) writePlacements(result *place.Result) (files []answer.Written, err error) {
	at := result.Placements[0].Plan
	slots := result.Slots[at]
	for _, engine := range []struct {
		name string
		file *target.File
	}{{counts.TensorRT, &o.TensorRT}, {counts.SGLang, &o.SGLang}, {counts.VLLM, &o.VLLM}, {counts.Ascend, &o.Ascend}} {
		if engine.file.Path == "" {
			continue
		}
		write := func(w io.Writer) error {
			return slots.Write(w, engine.name, result.Experts, at.Ranks, result.MoELayers)
		}
		if err := engine.file.Write(write); err != nil {
			return nil, err
		}
		files = append(files, answer.Written{Engine: engine.name, File: engine.file.Path})
	}
	return files, nil
}
