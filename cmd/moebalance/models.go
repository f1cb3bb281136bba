package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

type modelsOptions struct {
	config string
	out    resultFlags
}

func modelsCmd() *cobra.Command {
	var o modelsOptions
	c := &cobra.Command{
		Use:   "models [NAME…]",
		Short: "the presets: how published models route",
		Long: `models lists the presets: experts, top-k, groups, routing method and sizes of
published models, as their config.json says. NAME picks some of them. --config
reads any other model's Hugging Face config.json instead.

experts are the routed ones of a layer. groups "4 of 8" means that a token may
choose experts of 4 of 8 equal groups. MoE layers are those with routed experts.
The method is TensorRT-LLM's name for how logits become chosen experts. bias
says that a learned correction is added to the scores before choosing.`,
		Example: `  moebalance models
  moebalance models deepseek-v3 gpt-oss-120b
  moebalance models --config testdata/configs/qwen3-next.json`,
		Args: argCount(0, -1, "names of presets, or none"),
		RunE: func(c *cobra.Command, names []string) error { return o.run(c, names) },
	}
	c.Flags().StringVar(&o.config, "config", "", "read this Hugging Face config.json `FILE` instead of the presets")
	c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, m := range router.Models() {
			names = append(names, m.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	o.out.bind(c)
	return c
}

// modelsResult is the JSON of models.
type modelsResult struct {
	SchemaVersion int            `json:"schema_version"`
	Kind          string         `json:"kind"` // always "models"
	Models        []router.Model `json:"models"`
}

func (o *modelsOptions) run(c *cobra.Command, names []string) error {
	if err := o.out.check(); err != nil {
		return err
	}
	if o.config != "" && len(names) > 0 {
		return usagef("models: want names of presets or --config, have both")
	}
	models, err := o.models(names)
	if err != nil {
		return err
	}
	return o.out.write(c, modelsDocument(modelsResult{SchemaVersion: 1, Kind: "models", Models: models}))
}

func (o *modelsOptions) models(names []string) ([]router.Model, error) {
	if o.config != "" {
		m, err := readModelConfig(o.config)
		return []router.Model{m}, err
	}
	if len(names) == 0 {
		return router.Models(), nil
	}
	var models []router.Model
	for _, name := range names {
		m, err := router.FindModel(name)
		if err != nil {
			return nil, withCode(exitUsage, err)
		}
		models = append(models, m)
	}
	return models, nil
}

// readModelConfig reads a model from its config.json and names the file as its
// source.
func readModelConfig(path string) (router.Model, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return router.Model{}, err
	}
	m, err := router.ParseConfig(text)
	if err != nil {
		return router.Model{}, fmt.Errorf("reading %q: %w", path, err)
	}
	m.Source = path
	return m, nil
}

func modelsDocument(result modelsResult) output.Document {
	t := output.Table{Name: "models", Columns: []output.Column{
		{Name: "name"}, {Name: "experts", Kind: output.Count}, {Name: "top-k", Key: "top_k", Kind: output.Count}, {Name: "groups"},
		{Name: "method"}, {Name: "bias"}, {Name: "scale", Kind: output.Real}, {Name: "hidden", Key: "hidden_size", Kind: output.Count},
		{Name: "intermediate", Key: "intermediate_size", Kind: output.Count}, {Name: "layers", Kind: output.Count},
		{Name: "MoE layers", Key: "moe_layers", Kind: output.Count}, {Name: "logits", Key: "logits_dtype"}, {Name: "source"},
	}}
	for _, m := range result.Models {
		var groups any // none to choose from
		if m.Grouped() {
			groups = fmt.Sprintf("%d of %d", m.TopKGroups, m.Groups)
		}
		t.Rows = append(t.Rows, []any{
			m.Name, m.Experts, m.TopK, groups, string(m.Method), m.Bias, decimal(m.Scale),
			m.Hidden, m.Intermediate, m.Layers, m.MoELayers, m.LogitsDType, m.Source,
		})
	}
	return output.Document{Headline: quantity.Count(len(result.Models), "model"), Tables: []output.Table{t}, Value: result}
}

// decimal is the float64 of the same shortest decimal text: 2.827 stays 2.827.
func decimal(x float32) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	return y
}
