package main

import (
	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/router"
)

type modelsOptions struct{ resultFlags }

func (o *modelsOptions) answer(_ *cobra.Command, names []string) (output.Document, error) {
	if len(names) == 0 {
		return render.Models(router.Models()), nil
	}
	var models []router.Model
	for _, name := range names {
		m, err := router.ReadModel(name, "")
		if err != nil {
			return output.Document{}, err
		}
		models = append(models, m)
	}
	return render.Models(models), nil
}
