package source

import (
	"errors"
	"fmt"

	"github.com/moebalance/moebalance/router"
)

// Gate is a router and the ranks that hold its experts, as flags give them.
type Gate struct {
	Model     string `flag:"model"`
	Method    string `flag:"method"`
	Placement string `flag:"placement"`
}

// Read is the router that the flags name, with its model.
func (g Gate) Read() (m router.Model, gate router.Gate, err error) {
	if g.Model == "" {
		return m, gate, usagef("want --model: a preset, a config.json, or experts and top-k such as e256k8")
	}
	var method router.Method
	if g.Method != "" {
		if method, err = router.ParseMethod(g.Method); err != nil {
			return m, gate, usagef("--method: %w", err)
		}
	}
	if m, err = FindModel(g.Model, method); err != nil {
		return m, gate, err
	}
	gate = router.Gate{Method: m.Method, Shape: m.Shape, Scale: m.Scale}
	if method != "" {
		gate.Method = method
	}
	return m, gate, asUsage(gate.Validate())
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
