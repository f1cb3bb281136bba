package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

type countsOptions struct {
	ranks     int
	placement string
	model     modelFlags
	axes      string
	since     string
	span      time.Duration
	threshold flags.Share
	failAbove flags.Share
	out       resultFlags
}

func countsCmd() *cobra.Command {
	var o countsOptions
	c := command("counts", argCount(1, -1, "at least one file, folder or URL of expert counts"), o.run)
	c.Long = strings.Replace(c.Long, "{formats}", render.FormatList(), 1)
	f := c.Flags()
	f.IntVar(&o.ranks, "ep", 0, "place the experts contiguously on this many ranks (default as recorded)")
	f.StringVar(&o.placement, "placement", "",
		"place the experts as in this `FILE`: EPLB YAML (with --ep), expert map or slot assignments")
	o.model.bindCounts(c)
	bindAxes(c, &o.axes)
	f.StringVar(&o.since, "since", "",
		"report what was added since this earlier `FILE` of the same counters")
	f.DurationVar(&o.span, "for", 0, "scrape each URL twice, this far apart, and report what was added")
	o.threshold.Fraction = defaultThreshold
	f.Var(&o.threshold, "threshold", "flag imbalance above this")
	f.Var(&o.failAbove, "fail-above", "exit 3 if the rank load of any layer exceeds its floor by more than this")
	o.out.bind(c, func() []string { return render.Counts(&counts.Result{}, "").TableNames() })
	o.out.bindTop(c)
	return c
}

func (o *countsOptions) check(c *cobra.Command, paths []string) error {
	switch notURL := slices.IndexFunc(paths, func(path string) bool { return !source.IsURL(path) }); {
	case !c.Flags().Changed("for"):
	case o.span <= 0:
		return usagef("--for: want a duration above 0, have %v", o.span)
	case o.since != "":
		return usagef("--for and --since: want one of them, have both")
	case notURL >= 0:
		return usagef("--for: want URLs only, have %q; to compare two saved scrapes, use --since", paths[notURL])
	}
	if o.ranks < 0 || c.Flags().Changed("ep") && o.ranks == 0 {
		return usagef("--ep: want at least 1 rank, have %d", o.ranks)
	}
	return nil
}

func (o *countsOptions) run(c *cobra.Command, paths []string) error {
	if err := o.check(c, paths); err != nil {
		return err
	}
	result, err := source.Interruptible(c.Context(),
		func() (*counts.Result, error) { return o.judge(c.Context(), paths) })
	if err != nil {
		return err
	}
	if err := o.out.write(c, render.Counts(result, launch.Quote(paths))); err != nil {
		return err
	}
	if !o.failAbove.Given {
		return nil
	}
	switch worst := imbalance.Furthest(result.Imbalance, router.LevelRank, imbalance.Load); {
	case worst == nil:
		return withCode(exitInconclusive,
			errors.New("--fail-above: no layer has a known load over two or more ranks; give --ep if the number of ranks is "+
				"not recorded"))
	case router.Above(worst.MaxOverMean, worst.Floor, o.failAbove.Fraction):
		return withCode(exitGate, fmt.Errorf("rank load of layer %d is %s above its floor, limit %s: %s",
			worst.Layer, quantity.Percent(worst.MaxOverMean/worst.Floor-1), quantity.Confidence(o.failAbove.Fraction),
			worst.Source))
	}
	return nil
}

// judge reads the records and judges them.
func (o *countsOptions) judge(ctx context.Context, paths []string) (*counts.Result, error) {
	judging, err := o.judging()
	if err != nil {
		return nil, err
	}
	result := counts.NewResult(o.threshold.Fraction)
	earlier, err := source.Earlier(ctx, paths, o.since, o.span)
	if err != nil {
		return nil, err
	}
	axes, err := counts.ParseAxes(o.axes)
	if err != nil {
		return nil, usagef("--axes: %v", err)
	}
	for i, path := range paths {
		r, err := source.ReadCounts(ctx, path, axes)
		if err == nil && earlier != nil {
			r, err = r.Since(earlier[i])
		}
		if err != nil {
			return nil, err
		}
		if err := result.Add(r, judging); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// judging turns the flags into options, reading the files they name.
func (o *countsOptions) judging() (counts.Options, error) {
	judging := counts.Options{Ranks: o.ranks, Threshold: o.threshold.Fraction}
	if o.placement != "" {
		p, err := counts.ReadPlacement(o.placement, o.ranks)
		if err != nil {
			return judging, err
		}
		judging.Placement = p
	}
	if !o.model.named() {
		return judging, nil
	}
	m, err := o.model.find()
	judging.Shape, judging.MoELayers = &m.Shape, m.Routed()
	return judging, err
}

// bindAxes binds the flag of what the dimensions of an array are.
func bindAxes(c *cobra.Command, axes *string) {
	c.Flags().StringVar(axes, "axes", "",
		"`NAMES` of an array's dimensions (.npy, .pt, JSON): steps,layers,experts or layers,ranks,experts; "+
			"tokens,layers,topk for chosen experts")
}
