package source

import (
	"errors"
	"fmt"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// Gate is a router and the ranks that hold its experts, as flags give them: of a model, or by its
// shape.
type Gate struct {
	Model, Config        string
	Shape                router.Shape  // without a model
	Method               router.Method // in the place of the model's
	Scale                float32       // likewise
	BiasFile, BiasTensor string
	Placement            string // a file
}

// Check finds flags that do not go together.
func (g Gate) Check() error {
	named := 0
	for _, given := range []bool{g.Model != "", g.Config != "", g.Shape.Experts != 0} {
		if given {
			named++
		}
	}
	switch {
	case named == 0:
		return usagef("want --model NAME, --config FILE, or --experts with --top-k")
	case named > 1:
		return usagef("want one of --model, --config and --experts, have %d of them", named)
	case g.Shape.Experts == 0 && g.Shape != (router.Shape{}):
		return usagef("--top-k, --groups and --top-k-groups need --experts")
	case g.Shape.Experts != 0 && g.Shape.TopK == 0:
		return usagef("--experts needs --top-k")
	case (g.BiasFile == "") != (g.BiasTensor == ""):
		return usagef("--bias and --bias-tensor go together")
	}
	return nil
}

// Read is the router that the flags name, with the name of its model and the type of its logits.
func (g Gate) Read() (name string, gate router.Gate, dtype string, err error) {
	m, err := g.find()
	if err != nil {
		return "", gate, "", err
	}
	gate = router.Gate{Method: m.Method, Shape: m.Shape, Scale: m.Scale}
	if g.Method != "" {
		gate.Method = g.Method
	}
	if g.Scale != 0 {
		gate.Scale = g.Scale
	}
	if g.BiasFile != "" {
		if gate.Bias, err = safetensors.ReadTensor(g.BiasFile, g.BiasTensor); err != nil {
			return "", gate, "", fmt.Errorf("--bias: %w", err)
		}
	}
	return m.Name, gate, m.LogitsDType, asUsage(gate.Validate())
}

func (g Gate) find() (router.Model, error) {
	if g.Model != "" || g.Config != "" {
		return FindModel(g.Model, g.Config, g.Method)
	}
	m := router.Model{Name: fmt.Sprintf("e%dk%d", g.Shape.Experts, g.Shape.TopK), Scale: 1, LogitsDType: "bf16",
		Method: router.Renormalize, Shape: g.Shape}
	if m.Grouped() {
		m.Name += fmt.Sprintf("g%d-%d", g.Shape.Groups, g.Shape.TopKGroups)
		m.Method, m.LogitsDType = router.DeepSeekV3, "f32"
	}
	return m, nil
}

// Layout places the experts of the gate: as the file says, or contiguously on so many ranks.
func (g Gate) Layout(experts, ranks int) (router.Layout, error) {
	if g.Placement == "" {
		l, err := router.Contiguous(experts, ranks)
		return l, asUsage(err)
	}
	l, err := readLayout(g.Placement, experts)
	if err != nil {
		return l, fmt.Errorf("--placement: %w", err)
	}
	return l, nil
}

// asUsage marks an error as one about flags.
func asUsage(err error) error {
	if err == nil || errors.Is(err, ErrUsage) {
		return err
	}
	return marked{err, ErrUsage}
}
