package main

import (
	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
)

type modelsOptions struct {
	config string
	method router.Method
	out    resultFlags
}

func modelsCmd() *cobra.Command {
	var o modelsOptions
	c := command("models", argCount(0, -1, "names of presets, or none"), o.run)
	c.Flags().StringVar(&o.config, "config", "",
		"Hugging Face config.json `FILE` of a model or its folder, instead of the presets")
	flags.Parsed(c, &o.method, router.ParseMethod, "method", "", "routing method of --config, whatever it says",
		methodNames()...)
	c.ValidArgsFunction = cobra.FixedCompletions(router.ModelNames(), cobra.ShellCompDirectiveNoFileComp)
	o.out.bind(c, render.Models(nil).TableNames)
	return c
}

func (o *modelsOptions) run(c *cobra.Command, names []string) error {
	if o.config != "" && len(names) > 0 || o.config == "" && o.method != "" {
		return usagef("models: want names of presets, or --config and perhaps --method")
	}
	models, err := o.models(names)
	if err != nil {
		return err
	}
	return o.out.write(c, render.Models(models))
}

func (o *modelsOptions) models(names []string) ([]router.Model, error) {
	if o.config != "" {
		m, err := source.ReadModel(o.config, o.method)
		return []router.Model{m}, err
	}
	if len(names) == 0 {
		return router.Models(), nil
	}
	var models []router.Model
	for _, name := range names {
		m, err := source.FindModel(name, "", "")
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}
