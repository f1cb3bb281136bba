package main

import (
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
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
		return usagef("--ep: want at least 1 rank, have 0")
	case !slices.Contains([]string{place.PlanRobust, place.PlanEPLB}, o.Policy):
		return usagef("--plan: want %s or %s, have %q", place.PlanRobust, place.PlanEPLB, o.Policy)
	case o.Nodes < 1:
		return usagef("--nodes: want at least 1 node, have %d", o.Nodes)
	case o.SGLang.Path != "" && filepath.Ext(o.SGLang.Path) != ".json":
		return usagef("--write-sglang: want a name that ends in .json, by which SGLang tells a file, have %q", o.SGLang.Path)
	case o.TensorRT.Path+o.SGLang.Path+o.VLLM.Path+o.Ascend.Path != "" && (len(o.Redundant) > 1 || len(o.Ranks) > 1):
		return usagef("--redundant and --ep: want one value where a placement is written")
	}
	if o.Policy == place.PlanRobust {
		o.Policy = "" // where the counts allow it
	}
	return o.StepTime.Check()
}

func (o *placeOptions) answer(c call) (d document, err error) {
	if err := o.check(); err != nil {
		return d, err
	}
	if o.Learn = source.Learned(c.args); len(o.Learn) < len(c.args) { // balanced routing has nothing to teach
		c.skipped(slices.DeleteFunc(slices.Clone(c.args), func(p string) bool { return slices.Contains(o.Learn, p) }))
	}
	o.Shape, o.MoELayers = o.Model.Sizes(), o.Model.Routed()
	result, err := o.Judged(c.Context())
	if errors.Is(err, router.ErrShape) {
		err = usage(err)
	}
	if err != nil {
		return d, err
	}
	var written []answer.Written
	at := result.Placements[0].Plan
	engines := []string{placement.VLLM, placement.TensorRT, placement.SGLang, placement.Ascend}
	for i, file := range []*target.File{&o.VLLM, &o.TensorRT, &o.SGLang, &o.Ascend} {
		if file.Path == "" {
			continue
		}
		if err := file.Write(nil, func(to io.Writer) error {
			return result.Slots[at].Write(to, engines[i], result.Experts, at.Ranks, result.MoELayers)
		}); err != nil {
			return d, err
		}
		written = append(written, answer.Written{Engine: engines[i], File: file.Path})
	}
	apart := c.same(o.Learn, "ep", "redundant", "write-trtllm", "write-sglang", "write-vllm", "write-ascend")
	return render.Place(result, apart, written...), nil
}
