package main

import (
	"fmt"
	"io"

	"github.com/moebalance/moebalance/compare/bench/dataset"
	"github.com/moebalance/moebalance/router/quantity"
)

type datasetOptions struct {
	dataset.Spec
	outputFlag
}

func (o *datasetOptions) run(c call) error {
	if err := o.Check(); err != nil {
		return usage(err)
	}
	input, output := 0, 0
	write := func(w io.Writer) (err error) {
		input, output, err = o.Spec.Write(w)
		return err
	}
	if err := o.File.Write(c.OutOrStdout(), write); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s, %d input and %s\n", quantity.Count(o.Requests, "request"), input,
		quantity.Count(output, "output token"))
	return nil
}
