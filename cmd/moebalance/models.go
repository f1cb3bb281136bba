package main

import (
	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/router"
)

func modelsCmd() *cobra.Command {
	o := newResult()
	return tabled(verb("models", argCount(0, -1, "names of models, or none"), &o, func(c *cobra.Command,
		names []string) error {
		models := router.Models()
		if len(names) > 0 {
			models = nil
		}
		for _, name := range names {
			m, err := router.ReadModel(name, "")
			if err != nil {
				return err
			}
			models = append(models, m)
		}
		return o.write(c, render.Models(models))
	}), render.Models(nil).TableNames()...)
}
