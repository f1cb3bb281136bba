package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

type traceOptions struct {
	source.Reading
	Counts    string        `flag:"counts"`
	Model     *router.Model `flag:"model"`
	Summary   target.File   `flag:"summary"`
	Threshold float64       `flag:"threshold" in:"%" preset:"10%"`
	FailAbove *float64      `flag:"fail-above" in:"%"`
	resultFlags
}

// check finds flags without effect before a file is opened.
func (o *traceOptions) check(c call) error {
	if o.Model != nil && o.Counts == "" {
		return usagef("--model describes recorded counts: add --counts")
	}
	if o.Summary.Path == "" {
		return nil
	}
	return c.only("--summary replaces the trace", "summary", "rank", "range", "phase", "force")
}

func (o *traceOptions) answer(c call) (d document, err error) {
	paths, err := source.RunCaptures(c.args, c.skipped)
	options, wrong := o.Options(paths)
	if err := cmp.Or(err, wrong, o.check(c)); err != nil {
		return d, err
	}
	read, done := c.progress().Reading(paths)
	defer done()
	options.Threshold, options.Progress = o.Threshold, read
	if o.Summary.Path != "" {
		return d, o.Summary.Write(nil, func(w io.Writer) error { return trace.Summarize(c.Context(), w, paths, options) })
	}
	record, err := source.ReadCounts(o.Counts, nil)
	if err != nil {
		return d, err
	}
	t, err := source.Trace(c.Context(), paths, options, record, o.Model.Sizes())
	if err != nil {
		return d, err
	}
	d = render.Trace(t, c.same(c.args, "fail-above"))
	switch doubt := t.Doubt(); {
	case o.FailAbove != nil:
		return d, traceGate(t, *o.FailAbove)
	case doubt.Code == trace.CountsContradict:
		return d, failf(exitInconclusive, "%s", caveat.Text(doubt))
	}
	return d, nil
}

// traceGate fails on the layer with the largest imbalance, in steps of any kind with a tenth of the expert time.
func traceGate(t *trace.Trace, limit float64) error {
	unknown := func(why string) error { return failf(exitInconclusive, "--fail-above: %s", why) }
	above := func(layer router.OptInt, by router.Number, where string) error {
		return failf(exitGate, "expert-time imbalance of %s is %s%s, limit %s", answer.LayerName(layer),
			quantity.Percent(by), where, quantity.Confidence(limit))
	}
	switch worst := imbalance.Furthest(t.Imbalance, router.LevelRank, imbalance.Time); {
	case t.Undecided().Code != "":
		return unknown("imbalance is uncertain: " + caveat.Text(t.Undecided()))
	case worst == nil:
		return unknown("no layer has expert time on two or more ranks")
	case router.Above(worst.MaxOverMean, worst.Floor, limit):
		return above(worst.Layer, worst.Imbalance, "")
	case !worst.Layer.Defined():
		return unknown("layers are unknown, and the busy ranks of different layers cancel; name layers by NVTX ranges")
	}
	for _, k := range t.StepKinds {
		large := slices.ContainsFunc(t.Replays, func(p trace.Replay) bool { return p.Kind == k.Kind && !p.Little })
		if large && router.Above(k.Time.WorstMaxOverMean, k.Time.WorstFloor, limit) {
			return above(k.Time.WorstLayer, k.Time.WorstMaxOverMean-1,
				fmt.Sprintf(" in %s (%s)", quantity.Numbered("step", k.Steps), k.Name))
		}
	}
	return nil
}
