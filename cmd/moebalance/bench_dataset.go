package main

import "github.com/moebalance/moebalance/compare/bench/dataset"

type datasetOptions struct {
	dataset.Spec
	outputFlag
}

func (o *datasetOptions) run(c call) error {
	if err := o.Check(); err != nil {
		return usage(err)
	}
	return o.File.Write(c.OutOrStdout(), o.Spec.Write)
}
