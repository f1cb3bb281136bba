package workload

import (
	"fmt"

	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
)

// BalancedRows are the rows that each rank routes by in place of its gate's.
func (c Config) BalancedRows() ([][]float32, error) {
	layout, err := router.Contiguous(c.Gate.Shape.Experts, c.Ranks)
	if err != nil {
		return nil, err
	}
	rows, err := logits.Rows(logits.Spec{Model: "workload", Gate: c.Gate, Layout: layout, Mode: router.DEP}, c.Tokens)
	if err != nil {
		return nil, fmt.Errorf("balanced logits: %w", err)
	}
	return rows, nil
}
