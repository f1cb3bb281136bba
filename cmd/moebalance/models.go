package main

import (
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/router"
)

type modelsOptions struct{ resultFlags }

func (o *modelsOptions) answer(c call) (document, error) {
	models := router.Models()
	if len(c.args) > 0 {
		models = nil
	}
	for _, name := range c.args {
		m, err := router.ReadModel(name, "")
		if err != nil {
			return document{}, err
		}
		models = append(models, m)
	}
	return render.Models(models), nil
}
