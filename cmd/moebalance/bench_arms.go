package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/gain"
)

// checkArms takes the flags of arms and points apart.
func (o *benchOptions) checkArms(c *cobra.Command) error {
	for _, text := range o.armWords {
		a, err := bench.ParseArm(text)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("bench: --arm: %w", err))
		}
		o.Arms = append(o.Arms, a)
	}
	if o.routers != "" {
		routers, err := control.ParseRouters(o.routers)
		if err != nil {
			return withCode(exitUsage, fmt.Errorf("bench: --routers: %w", err))
		}
		for _, r := range routers {
			o.Arms = append(o.Arms, bench.RouterArm(r))
		}
	}
	if o.builds != "" {
		names, err := gain.ParseBuilds(o.builds)
		switch {
		case err != nil:
			return withCode(exitUsage, fmt.Errorf("bench: %w", err))
		case c.Flags().Changed("treatment") || c.Flags().Changed("proof") || c.Flags().Changed("require-proof"):
			return usagef("bench: --arms compares two builds, without a treatment and without proof: remove --treatment, " +
				"--proof and --require-proof")
		}
		o.Builds, o.Treatment = names, bench.Treatment{}
		if !c.Flags().Changed("threshold") {
			o.threshold.Fraction = 0
		}
	}
	shape, err := o.model.shape()
	switch {
	case err != nil:
		return err
	case o.points == "" && shape != nil:
		return usagef("bench: --model and --config are for the tokens per active expert at each of --points: give --points")
	case o.points == "":
		return nil
	}
	at, err := points.Parse(o.points)
	if err != nil {
		return withCode(exitUsage, fmt.Errorf("bench: --%w", err))
	}
	if shape != nil {
		at.Experts, at.TopK = shape.Experts, shape.TopK
	}
	o.Points = &at
	return nil
}
