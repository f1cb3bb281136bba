package main

import (
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

type placeOptions struct {
	source.Placing
	Model    *router.Model `flag:"model"`
	TensorRT target.File   `flag:"write-trtllm"`
	SGLang   target.File   `flag:"write-sglang"`
	VLLM     target.File   `flag:"write-vllm"`
	Ascend   target.File   `flag:"write-ascend"`
	resultFlags
}

func (o *placeOptions) check() error {
	switch {
	case len(o.Ranks) > 0 && slices.Min(o.Ranks) < 1:
		return usagef("--ep: want at least 1 rank, have %v", o.Ranks)
	case o.MaxMoves != nil && *o.MaxMoves > 1:
		return usagef("--max-moves: want at most 100 %%, which is all copies, have %s", quantity.Confidence(*o.MaxMoves))
	case !slices.Contains([]string{place.PlanRobust, place.PlanEPLB}, o.Policy):
		return usagef("--plan: want %s or %s, have %q", place.PlanRobust, place.PlanEPLB, o.Policy)
	case o.Nodes < 1:
		return usagef("--nodes: want at least 1 node, have %d", o.Nodes)
	case len(o.files()) > 0 && (len(o.Redundant) > 1 || len(o.Ranks) > 1):
		return usagef("--redundant and --ep: want one value where a placement is written")
	}
	if o.Policy == place.PlanRobust {
		o.Policy = "" // where the counts allow it
	}
	for _, values := range []*[]int{&o.Redundant, &o.Ranks} {
		slices.Sort(*values)
		*values = slices.Compact(*values)
	}
	return o.Timing.Check()
}

// files are where engines find the placement that they take.
func (o *placeOptions) files() map[string]*target.File {
	all := map[string]*target.File{counts.TensorRT: &o.TensorRT, counts.SGLang: &o.SGLang, counts.VLLM: &o.VLLM,
		counts.Ascend: &o.Ascend}
	maps.DeleteFunc(all, func(_ string, f *target.File) bool { return f.Path == "" })
	return all
}

func (o *placeOptions) answer(c *cobra.Command, paths []string) (d output.Document, err error) {
	if err := o.check(); err != nil {
		return d, err
	}
	o.Learn = paths
	if !c.Flags().Changed("redundant") {
		o.Redundant = nil // as recorded
	}
	if o.Model != nil {
		o.Shape, o.MoELayers = &o.Model.Shape, o.Model.Routed()
	}
	result, err := o.Judged(c.Context())
	if errors.Is(err, router.ErrShape) {
		err = usage(err)
	}
	if err != nil {
		return d, err
	}
	var written []answer.Written
	targets, at := o.files(), result.Placements[0].Plan
	for _, engine := range slices.Backward(slices.Sorted(maps.Keys(targets))) {
		if err := targets[engine].Write(func(w io.Writer) error {
			return result.Slots[at].Write(w, engine, result.Experts, at.Ranks, result.MoELayers)
		}); err != nil {
			return d, err
		}
		written = append(written, answer.Written{Engine: engine, File: targets[engine].Path})
	}
	apart := sameResult(c, paths, "ep", "redundant", "write-trtllm", "write-sglang", "write-vllm", "write-ascend")
	return render.Place(result, apart, written...), nil
}
