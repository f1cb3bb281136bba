package main

import (
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/router"
)

// modelFlags name a model.
type modelFlags struct{ model, config string }

func (m *modelFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&m.model, "model", "", "model preset, such as gpt-oss-120b or deepseek-v3; see 'moebalance models'")
	f.StringVar(&m.config, "config", "", "Hugging Face config.json `FILE` of the model")
}

// bindCounts binds them where recorded counts are judged.
func (m *modelFlags) bindCounts(f *pflag.FlagSet) {
	m.bind(f)
	f.Lookup("model").Usage = "model of the counts, for the top-k and groups of the null: " + f.Lookup("model").Usage
}

func (m *modelFlags) named() bool { return m.model != "" || m.config != "" }

// find is the named model. A config.json may stand in the preset's place.
func (m *modelFlags) find() (router.Model, error) {
	switch {
	case m.model != "" && m.config != "":
		return router.Model{}, usagef("want one of --model and --config, have both")
	case m.config != "":
		return readModelConfig(m.config)
	case isFile(m.model):
		return readModelConfig(m.model)
	}
	found, err := router.FindModel(m.model)
	return found, withCode(exitUsage, err)
}

// shape is that of the named model, nil without one.
func (m *modelFlags) shape() (*router.Shape, error) {
	if !m.named() {
		return nil, nil
	}
	found, err := m.find()
	return &found.Shape, err
}
