package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/points"
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
	if o.Builds = bench.BuildsOf(o.Arms); o.Builds.Named() {
		if c.Flags().Changed("treatment") || c.Flags().Changed("proof") || c.Flags().Changed("require-proof") {
			return usagef("bench: --arm %s and --arm %s are two builds, without a treatment and without proof: remove "+
				"--treatment, --proof and --require-proof, or say what sets both apart", o.Builds[0], o.Builds[1])
		}
		o.Treatment = bench.Treatment{}
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
